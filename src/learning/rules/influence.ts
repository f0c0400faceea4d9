/**
 * A bound of what one contributor adds to a batch. The predictor carries a scale C for each block of weights, and the gradient sum of
 * a contributor with n inputs has a norm of at most C·√n. Each node scales its own sums down to the bound, and neighbours refuse larger
 * ones. Sums of several contributors then satisfy ‖sum‖ ≤ C·√(contributors · inputs), by the Cauchy–Schwarz inequality.
 *
 * Nodes choose C by votes: a node whose own sums lose more than a little to the bound votes for a larger one, the others for a smaller
 * one. Votes have a block of their own in gradient sums, so they are summed, carried over and covered like gradients. A minority that
 * always votes for a larger bound raises it a little: with a quarter of the inputs, to where the others lose 1/√2 of what they tolerate.
 * A scale that followed from the norms of batches would grow without limit with the sums of such a minority.
 */
import type { Blocks, InfluenceRule, Layout } from '../types.js'
import { type CarriedBlock, placeOf } from './carried.js'

const INFLUENCE_BLOCK = 'influence'

/** Share of the squared norm of own sums at whose loss a node's inputs vote half for a larger bound and half against it. */
const TOLERATED_LOSS = 0.02
/** Ratio of the first scale to that of the first batch, so that the bound is loose during the first dozens of updates. */
const FIRST_FACTOR = 3
/** Growth of a scale in an update if all vote for it. It is fast, because gradients that are scaled down too far teach little. */
const GROWTH = 3
/** Reduction if none votes for growth. It is slow, so that the scale does not oscillate. */
const REDUCTION = 1 / 16
const [LEAST, MOST] = [1e-20, 1e20]

/** The block has a scale in parameters, and votes in sums, for each block of weights. */
export class InfluenceBound implements InfluenceRule, CarriedBlock {
  readonly name = INFLUENCE_BLOCK
  readonly bounded: number
  readonly index: number

  /** @param layout of the parameters of the model that carries it */
  constructor(layout: Layout) {
    this.index = placeOf(INFLUENCE_BLOCK, layout)
    this.bounded = layout.blocks.filter(({ isExact }) => !isExact).length
  }

  get length(): number {
    return this.bounded
  }

  initial(): Float32Array {
    return new Float32Array(this.bounded)
  }

  next(before: Float32Array, votes: Float32Array, count: number, gradients: () => Blocks): Float32Array {
    return before.map((scale, b) => this.#next(scale, votes[b], count, () => squaresOf(gradients()[b])))
  }

  of(parameters: Blocks): Float32Array {
    return parameters[this.index]
  }

  vote(lost: number): number {
    return (lost * lost) / (lost * lost + TOLERATED_LOSS * TOLERATED_LOSS)
  }

  /**
   * A scale after a batch.
   * @param before 0 if it is not known yet
   * @param votes number of inputs whose nodes vote for a larger scale
   * @param squares sum of the squares of the batch's gradient sum
   */
  #next(before: number, votes: number, count: number, squares: () => number): number {
    if (!(before > 0)) return within(FIRST_FACTOR * Math.sqrt(squares() / count))
    const majority = 2 * Math.max(0, Math.min(1, votes / count)) - 1
    const cube = majority * majority * majority
    return within(cube > 0 ? before * (1 + GROWTH * cube) : before / (1 - REDUCTION * cube))
  }
}

function squaresOf(block: Float32Array): number {
  let sum = 0
  for (let i = 0; i < block.length; i++) sum += block[i] * block[i]
  return sum
}

/** NaN and 0 become 0: not known. */
function within(scale: number): number {
  return scale > 0 ? Math.max(LEAST, Math.min(MOST, scale)) : 0
}

/**
 * The bound of what a contributor adds (`InfluenceRule`), at a node: its own sums are scaled down
 * to the bound before they leave, so that all neighbours receive the same numbers, and sums and
 * steps of others that exceed it are refused.
 */

import type { Blocks, InfluenceRule } from '../../learning/types.js'
import { stepOf } from '../../numeric/lattice.js'
import { type Sum, SumBlock } from '../../numeric/sums.js'
import { type Coverage, covered } from '../state/coverage.js'
import { type Exponents, exponentsAt, type LazyGrid } from '../state/rounding.js'
import { FrameError } from '../wire/bytes.js'

/** Rounding errors of sums are far below this share. */
const TOLERANCE = 1e-3
/** Number of own sums, one of each predictor, by which a node judges the bound. */
const WINDOW = 256

/** Norm of a block of a sum. @param exponents of its steps, if it consists of integers */
function normOf({ indices, values }: SumBlock, exponents?: Exponents): number {
  const steps = exponents && exponentsAt(exponents, indices)
  const length = indices?.length ?? values.length
  let squares = 0
  for (let n = 0; n < length; n++) {
    const value = values[indices === undefined ? n : indices[n]] * (steps === undefined ? 1 : stepOf(steps, n))
    squares += value * value
  }
  return Math.sqrt(squares)
}

/** A sum, or a batch. */
interface CoveredSum {
  readonly sum: Sum
  readonly count: number
  readonly coverage: Coverage
}

/**
 * Checks the sum of one or several contributors.
 * @param parameters of the predictor at which it was computed
 * @param grid of that predictor, if sums are integers
 * @param originOf names a contributor @default none is named
 * @throws FrameError if it exceeds the bound, or contains more votes than inputs
 */
export function checkInfluence(
  rule: InfluenceRule,
  parameters: Blocks,
  grid: LazyGrid | undefined,
  { sum, count, coverage }: CoveredSum,
  originOf?: (contributor: number) => string
): void {
  const scales = rule.of(parameters)
  const votes = sum[rule.index].values
  const contributors = coverage.size
  for (let b = 0; b < rule.bounded; b++) {
    const slack = TOLERANCE * count
    if (!(votes[b] >= -slack && votes[b] <= count + slack))
      throw new FrameError(`${count} gradients with ${votes[b]} votes for a larger bound`)
    if (!(scales[b] > 0)) continue
    const maxNorm = scales[b] * Math.sqrt(contributors * count)
    const norm = normOf(sum[b], grid?.[b])
    if (norm <= maxNorm * (1 + TOLERANCE)) continue
    const times = count === 0 ? '' : `, ${(norm / maxNorm).toPrecision(3)} times the bound`
    const [only, ...others] = covered(coverage)
    const of = others.length === 0 ? (originOf?.(only) ?? 'a contributor') : `${contributors} contributors`
    throw new FrameError(`${count} gradients of ${of} have a sum of norm ${norm.toPrecision(3)}${times}`)
  }
}

/** Scales a node's own sums down to the bound, and votes. */
export class OwnInfluence {
  readonly #rule: InfluenceRule
  #scales: Float32Array
  /** Counts of the last own sums, one at each predictor, and squared norms of bounded blocks. */
  readonly #counts = new Float64Array(WINDOW)
  readonly #squares: readonly Float64Array[]
  #recorded = 0
  /** Share of these squared norms that the current bound would take, for each bounded block. */
  readonly #lost: Float64Array
  /** Copies of blocks that are scaled down. */
  readonly #scaled: SumBlock[] = []

  /** @param parameters of the initial predictor */
  constructor(rule: InfluenceRule, parameters: Blocks) {
    this.#rule = rule
    this.#scales = rule.of(parameters)
    this.#lost = new Float64Array(rule.bounded)
    this.#squares = Array.from({ length: rule.bounded }, () => new Float64Array(WINDOW))
  }

  /** The node holds another predictor, with these parameters. */
  switchPredictor(parameters: Blocks): void {
    this.#scales = this.#rule.of(parameters)
    for (let b = 0; b < this.#lost.length; b++) this.#lost[b] = this.#lostShare(b)
  }

  /** Share of recent own sums' squared norms that the bound takes, the largest of all blocks. */
  get lostShare(): number {
    return this.#lost.reduce((a, b) => Math.max(a, b), 0)
  }

  #lostShare(block: number): number {
    if (!this.#isBounded(block)) return 0
    let total = 0
    let lost = 0
    const squares = this.#squares[block]
    const squaredScale = this.#scales[block] * this.#scales[block]
    // Entries that are not recorded yet are 0.
    for (let i = 0; i < WINDOW; i++) {
      total += squares[i]
      lost += Math.max(0, squares[i] - squaredScale * this.#counts[i])
    }
    return total > 0 ? lost / total : 0
  }

  #isBounded(block: number): boolean {
    return block < this.#rule.bounded && this.#scales[block] > 0
  }

  /** Bound of the norm of a block of the own sum. */
  #maxNorm(block: number, count: number): number {
    return this.#scales[block] * Math.sqrt(count)
  }

  /**
   * A block of the own sum as neighbours receive it: the same array, or one that is valid until the
   * next call for this block.
   */
  bounded(block: SumBlock, b: number, count: number, exponents: Exponents | undefined): SumBlock {
    if (b === this.#rule.index) return this.#votes(count, exponents !== undefined)
    if (!this.#isBounded(b)) return block
    const norm = normOf(block, exponents)
    const maxNorm = this.#maxNorm(b, count)
    if (norm <= maxNorm) return block
    this.#scaled[b] ??= SumBlock.zeros(block.length)
    const scaled = this.#scaled[b]
    scaled.copy(block)
    const factor = maxNorm / norm
    const { indices, values } = scaled
    const length = indices?.length ?? values.length
    for (let n = 0; n < length; n++) {
      const i = indices === undefined ? n : indices[n]
      const value = values[i] * factor
      // Adding 0 turns −0 into 0.
      scaled.set(i, exponents === undefined ? value : Math.trunc(value) + 0)
    }
    return scaled
  }

  #votes(count: number, isInteger: boolean): SumBlock {
    const votes = new Float32Array(this.#lost.length)
    for (let b = 0; b < votes.length; b++) {
      const exact = this.#rule.vote(this.#lost[b]) * count
      votes[b] = isInteger ? Math.round(exact) : exact
    }
    return new SumBlock(votes)
  }

  /** Records the sum of all own gradients at the current predictor. */
  record(sum: Sum, count: number, grid: LazyGrid | undefined): void {
    if (count === 0) return
    const at = this.#recorded++ % WINDOW
    this.#counts[at] = count
    for (const [b, squares] of this.#squares.entries()) squares[at] = normOf(sum[b], grid?.[b]) ** 2
  }
}

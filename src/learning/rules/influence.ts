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
import { valuesOf } from '../../numeric/lattice.js'
import type { Averaging, Blocks, InfluenceRule, Layout, Learner, RuleState, UpdateRule } from '../types.js'
import { copyingLast } from './averaging.js'
import { withUnit } from './lattice.js'

const INFLUENCE_BLOCK = 'influence'

/** Share of the squared norm of own sums at whose loss a node's inputs vote half for a larger bound and half against it. */
const TOLERATED_LOSS = 0.02
/** The first scale is so many times that of the first batch, so that the bound is loose during the first dozens of updates. */
const FIRST_FACTOR = 3
/** Growth of a scale in an update if all vote for it. It is fast, because gradients that are scaled down too far teach little. */
const GROWTH = 3
/** Reduction if none votes for growth. It is slow, so that the scale does not oscillate. */
const REDUCTION = 1 / 16
const [LEAST, MOST] = [1e-20, 1e20]

/** A model whose predictors carry the scales, and whose sums carry votes, in a block after the other ones. */
export class InfluenceBound implements InfluenceRule {
  readonly bounded: number
  readonly index: number
  readonly #learners = new WeakMap<Learner, Learner>()

  /**
   * @param layout of the model's parameters, without the block of scales
   * @param bounded number of its first blocks that are bounded @default all
   */
  constructor({ blocks: { length } }: Layout, bounded = length) {
    this.index = length
    this.bounded = bounded
  }

  of(parameters: Blocks): Float32Array {
    return parameters[this.index]
  }

  vote(lost: number): number {
    return (lost * lost) / (lost * lost + TOLERATED_LOSS * TOLERATED_LOSS)
  }

  /**
   * A scale after a batch. Uses only + − × ÷ and square roots.
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

  /** The learner with the additional block, its last one. */
  learner(learner: Learner): Learner {
    const known = this.#learners.get(learner)
    if (known !== undefined) return known
    const own = (blocks: Blocks) => blocks.slice(0, this.index)
    const { addGradient, after } = learner
    const created: Learner = {
      layout: { blocks: [...learner.layout.blocks, { name: INFLUENCE_BLOCK, length: this.bounded }] },
      outputs: learner.outputs,
      markGradient: learner.markGradient,
      classifies: learner.classifies,
      outcomeKind: learner.outcomeKind,
      rowMacs: learner.rowMacs,
      initial: () => [...learner.initial(), new Float32Array(this.bounded)],
      score: (parameters, ...rows) => learner.score(own(parameters), ...rows),
      addGradient: (parameters, examples, from, to, sum) =>
        addGradient.call(learner, own(parameters), examples, from, to, own(sum)),
      predict: (parameters, ...rows) => learner.predict(own(parameters), ...rows),
      ...(after && { after: (updates: number) => this.learner(after.call(learner, updates)) })
    }
    this.#learners.set(learner, created)
    return created
  }

  /** The rule and the average for the parameters of such a learner. */
  recipe<R extends { readonly rule: UpdateRule; readonly averaging: Averaging }>({ rule, averaging, ...rest }: R) {
    const own = ({ parameters, state }: RuleState): RuleState => ({ parameters: parameters.slice(0, -1), state })
    const { grid } = rule
    const boundedRule: UpdateRule = {
      name: rule.name,
      description: `${rule.description} bounded`,
      stateLayout: ({ blocks }) => rule.stateLayout({ blocks: blocks.slice(0, -1) }),
      isLocal: rule.isLocal,
      leastWeight: rule.leastWeight,
      step: (previous, sum, ...[count, updates, contributors]) => {
        const before = own(previous)
        const gradients = sum.slice(0, -1)
        const votes = sum[sum.length - 1]
        const values = () => (grid ? valuesOf(gradients, grid(before, updates)) : gradients)
        const scales = previous.parameters[previous.parameters.length - 1].map((scale, b) =>
          this.#next(scale, votes[b], count, () => squaresOf(values()[b]))
        )
        const { parameters, state } = rule.step(before, gradients, count, updates, contributors)
        return { parameters: [...parameters, scales], state }
      },
      ...(grid && { grid: (previous, updates) => withUnit(grid(own(previous), updates)) })
    }
    return { ...rest, rule: boundedRule, averaging: copyingLast(averaging) }
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

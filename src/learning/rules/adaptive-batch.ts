/**
 * A batch size that peers choose together: the predictor carries b in a block of its own, and an update computes the next b from
 * the batch. A node counts the gradients that it adds while no neighbour is known to hold its predictor, in the same block of its
 * gradient sums. These counts are summed, carried over and covered like gradients. If they are more than half of a batch, predictors
 * change faster than links announce them, and b grows; otherwise it shrinks. Every node that replays the batch, or receives the
 * predictor, has the same b.
 */

import type { Averaging, BatchRule, Blocks, Layout, Learner, RuleState, UpdateRule } from '../types.js'
import { copyingLast } from './averaging.js'
import { withUnit } from './lattice.js'

/** Bounds of b, whole numbers, both at least 1. */
export interface BatchRange {
  readonly min: number
  readonly max: number
}

/** In parameters: b before rounding. In sums: the number of gradients that were added while no neighbour held the predictor. */
const batchBlock: Layout['blocks'][number] = { name: 'batch', length: 1 }

/** The share of such gradients at which b stays the same. */
const TARGET_SHARE = 0.5
/** Relative change of b in an update for each deviation of 1 from this share. */
const GAIN = 0.1

/** The bounds of b, how it follows from a batch, and the parts of a model that carries it. */
export class AdaptiveBatch implements BatchRule, BatchRange {
  readonly min: number
  readonly max: number

  constructor({ min, max }: BatchRange) {
    this.min = min
    this.max = max
  }

  /** The parameters may come from another peer, and are not trusted. */
  of(parameters: Blocks): number {
    return Math.round(this.#within(lastOf(parameters)[0]))
  }

  countUnshared(sum: Blocks, count: number): void {
    lastOf(sum)[0] += count
  }

  /**
   * b before rounding, of the predictor that an update yields. Uses only + − × ÷.
   * @param before b before rounding, of its parent
   * @param unshared number of gradients of the batch that were added while no neighbour held the parent
   * @param count number of all gradients of the batch
   */
  next(before: number, unshared: number, count: number): number {
    const share = Math.max(0, Math.min(1, unshared / count))
    return this.#within(Math.fround(this.#within(before) * (1 + GAIN * (share - TARGET_SHARE))))
  }

  /** NaN becomes the minimum. */
  #within(b: number): number {
    return b >= this.min ? Math.min(b, this.max) : this.min
  }

  /** The learner with the additional block, its last one. */
  learner(learner: Learner): Learner {
    const { length } = learner.layout.blocks
    const own = (blocks: Blocks) => blocks.slice(0, length)
    return {
      layout: { blocks: [...learner.layout.blocks, batchBlock] },
      outputs: learner.outputs,
      markGradient: learner.markGradient,
      classifies: learner.classifies,
      outcomeKind: learner.outcomeKind,
      initial: () => [...learner.initial(), Float32Array.of(this.min)],
      score: (parameters, ...rows) => learner.score(own(parameters), ...rows),
      addGradient: (parameters, examples, from, to, sum) =>
        learner.addGradient(own(parameters), examples, from, to, own(sum)),
      predict: (parameters, ...rows) => learner.predict(own(parameters), ...rows)
    }
  }

  /** The rule and the average for the parameters of such a learner. The average's last block is that of the parameters. */
  recipe<R extends { readonly rule: UpdateRule; readonly averaging: Averaging }>({ rule, averaging, ...rest }: R) {
    const own = ({ parameters, state }: RuleState): RuleState => ({ parameters: parameters.slice(0, -1), state })
    const { grid } = rule
    const adaptiveRule: UpdateRule = {
      name: rule.name,
      description: rule.description,
      stateLayout: ({ blocks }) => rule.stateLayout({ blocks: blocks.slice(0, -1) }),
      isLocal: rule.isLocal,
      leastWeight: rule.leastWeight,
      step: (previous, sum, ...[count, updates, contributors]) => {
        const { parameters, state } = rule.step(own(previous), sum.slice(0, -1), count, updates, contributors)
        const batch = this.next(lastOf(previous.parameters)[0], lastOf(sum)[0], count)
        return { parameters: [...parameters, Float32Array.of(batch)], state }
      },
      ...(grid && { grid: (previous, updates) => withUnit(grid(own(previous), updates)) })
    }
    return { ...rest, rule: adaptiveRule, averaging: copyingLast(averaging) }
  }
}

function lastOf(blocks: Blocks): Float32Array {
  return blocks[blocks.length - 1]
}

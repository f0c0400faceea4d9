/**
 * Property 13 (batch choice): where b adapts, the b of every predictor is within the bounds and follows from its parent's b and the
 * batch. At most all gradients of a batch were added while no neighbour held the predictor.
 */
import { formatId, type Predictor } from '../../src/admb/index.js'
import type { AdaptiveBatch } from '../../src/learner/index.js'
import { Violation } from '../result.js'
import type { CheckedNode, Invariant, PredictorChange } from './invariant.js'

export class BatchChoice implements Invariant {
  readonly #batch: AdaptiveBatch

  constructor(batch: AdaptiveBatch) {
    this.#batch = batch
  }

  predictorChanged(_node: CheckedNode, change: PredictorChange): void {
    const { min, max } = this.#batch
    const { predictor, parent } = change
    const key = formatId(predictor.id)
    const b = batchOf(predictor)
    if (!(b >= min && b <= max)) throw new Violation('batch choice', `${key} has b = ${b}, outside ${min}..${max}`)
    if (change.cause !== 'updated') return
    const { sum, count } = change.batch
    const unshared = sum[sum.length - 1][0]
    if (!(unshared >= 0 && unshared <= count))
      throw new Violation('batch choice', `${unshared} of the ${count} gradients of ${key} are unshared`)
    const expected = this.#batch.next(batchOf(parent), unshared, count)
    if (b !== Math.fround(expected))
      throw new Violation('batch choice', `${key} has b = ${b}; its parent and its batch give ${expected}`)
  }
}

/** b before rounding. */
function batchOf({ parameters }: Predictor): number {
  return parameters[parameters.length - 1][0]
}

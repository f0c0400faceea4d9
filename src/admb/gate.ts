/** Whole predictors of other nodes that the driver has refused, so that they are neither judged nor requested again. */
import type { AdmbOptions } from './options.js'
import type { Predictor } from './predictor.js'
import { idKey, type PredictorId } from './predictor-id.js'

/** Number of ids that are remembered. */
const MEMORY = 256

export class Gate {
  readonly #accepts: AdmbOptions['gate']
  /** Keys of refused ids, oldest first. */
  readonly #rejected = new Set<string>()

  /** @param accepts undefined if every predictor is accepted */
  constructor(accepts: AdmbOptions['gate']) {
    this.#accepts = accepts
  }

  /** Whether the candidate may replace the current predictor; remembers its id otherwise. */
  accepts(candidate: Predictor, current: Predictor): boolean {
    if (this.#accepts === undefined || this.#accepts(candidate, current)) return true
    const [oldest] = this.#rejected
    if (this.#rejected.size >= MEMORY) this.#rejected.delete(oldest)
    this.#rejected.add(idKey(candidate.id))
    return false
  }

  hasRejected(id: PredictorId): boolean {
    return this.#rejected.size > 0 && this.#rejected.has(idKey(id))
  }
}

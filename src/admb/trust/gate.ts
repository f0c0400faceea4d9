/** Predictors that the driver has refused, so that they are rarely judged and requested again. */
import type { AdmbOptions } from '../core/options.js'
import type { Predictor } from '../state/predictor.js'
import { idKey, type PredictorId } from '../state/predictor-id.js'

/** Number of ids that are remembered. */
const MEMORY = 256
/**
 * Number of own inputs after which a refused predictor may be judged again, on inputs that are
 * partly new. It doubles with each refusal, so that n inputs judge a predictor about log2(n / 64)
 * times: neither the cost nor the probability that chance lets a bad one pass grows with the number
 * of times that it is sent.
 */
const RETRY_INPUTS = 64

interface Refused {
  readonly wait: number
  /** Number of own inputs from which it may be judged again. */
  readonly until: number
}

export class Gate {
  readonly #accepts: AdmbOptions['gate']
  /** Refused predictors by key of the id, the first refused one at the beginning. */
  readonly #refused = new Map<string, Refused>()
  #inputs = 0

  /** @param accepts undefined if every predictor is accepted */
  constructor(accepts: AdmbOptions['gate']) {
    this.#accepts = accepts
  }

  /** The node has learned `count` inputs. */
  recordInputs(count: number): void {
    this.#inputs += count
  }

  /** Whether the candidate may replace the current predictor. */
  accepts(candidate: Predictor, current: Predictor): boolean {
    return this.#accepts === undefined || this.#accepts(candidate, current)
  }

  /** The predictor is refused until the node has learned some more inputs. */
  refuse(id: PredictorId): void {
    const key = idKey(id)
    const wait = 2 * (this.#refused.get(key)?.wait ?? RETRY_INPUTS / 2)
    const [oldest] = this.#refused.keys()
    if (this.#refused.size >= MEMORY && !this.#refused.has(key)) this.#refused.delete(oldest)
    this.#refused.set(key, { wait, until: this.#inputs + wait })
  }

  /** Whether it was refused, and the node has learned too few inputs since. */
  hasRejected(id: PredictorId): boolean {
    if (this.#refused.size === 0) return false
    const refused = this.#refused.get(idKey(id))
    return refused !== undefined && this.#inputs < refused.until
  }
}

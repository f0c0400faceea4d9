/**
 * The test of Page and Hinkley for an increase of the mean (Page, "Continuous inspection schemes", Biometrika 1954; in this form
 * in Gama et al., "On evaluating stream learning algorithms", Machine Learning 2013): with m_t = Σ (x_i − x̄_i − δ), where x̄_i is
 * the mean of the first i values, it alarms when m_t − min m exceeds λ.
 */
import type { Change } from './adwin.js'

export interface PageHinkleyOptions {
  /** δ: increase of the mean that is tolerated. @default 0.005 */
  readonly delta?: number
  /** λ: threshold. Larger values give fewer false alarms and later true ones. @default 50 */
  readonly threshold?: number
  /** Values before the first alarm. @default 30 */
  readonly least?: number
}

export class PageHinkley {
  readonly #delta: number
  readonly #threshold: number
  readonly #least: number
  #count = 0
  #mean = 0
  #sum = 0
  #lowest = 0
  /** Values since the lowest sum, and their sum. */
  #countSince = 0
  #sumSince = 0

  constructor({ delta = 0.005, threshold = 50, least = 30 }: PageHinkleyOptions = {}) {
    this.#delta = delta
    this.#threshold = threshold
    this.#least = least
  }

  /** Adds a value from [0, 1]. @returns the increase; after it, the test starts again */
  add(value: number): Change | undefined {
    this.#count++
    this.#mean += (value - this.#mean) / this.#count
    this.#sum += value - this.#mean - this.#delta
    this.#countSince++
    this.#sumSince += value
    if (this.#sum < this.#lowest) {
      this.#lowest = this.#sum
      this.#countSince = 0
      this.#sumSince = 0
    }
    if (this.#count < this.#least || this.#sum - this.#lowest <= this.#threshold) return undefined
    const earlier = this.#count - this.#countSince
    const after = this.#sumSince / this.#countSince
    const before = earlier === 0 ? after : (this.#mean * this.#count - this.#sumSince) / earlier
    this.#count = this.#mean = this.#sum = this.#lowest = this.#countSince = this.#sumSince = 0
    return { before, after }
  }
}

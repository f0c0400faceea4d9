/**
 * Limits the rate of warnings, so that a file of malformed lines, or a peer that sends invalid data, does not flood the log.
 * Suppressed warnings are counted.
 */

/** Number of warnings that may be logged at once. */
const BURST = 10
/** Time after which one more warning may be logged, in milliseconds. */
const EVERY_MS = 10_000

export class WarningLimiter {
  readonly #emit: (reason: string) => void
  readonly #now: () => number
  #left = BURST
  #refilled: number
  #suppressed = 0

  /** @param now a monotonic clock in milliseconds */
  constructor(emit: (reason: string) => void, now: () => number) {
    this.#emit = emit
    this.#now = now
    this.#refilled = now()
  }

  warn(reason: string): void {
    const now = this.#now()
    const refill = Math.floor((now - this.#refilled) / EVERY_MS)
    this.#refilled += refill * EVERY_MS
    this.#left = Math.min(BURST, this.#left + refill)
    if (this.#left === 0) {
      this.#suppressed++
      return
    }
    this.#left--
    const more = this.#suppressed === 0 ? '' : ` (and ${this.#suppressed} suppressed warnings)`
    const limit = this.#left === 0 ? `; further warnings are logged at most every ${EVERY_MS / 1000} s` : ''
    this.#suppressed = 0
    this.#emit(reason + more + limit)
  }
}

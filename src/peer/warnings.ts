/**
 * Warnings at a bearable pace: a file of malformed lines, or a peer that talks nonsense, must not flood the main thread
 * and the log. What is held back is counted.
 */

/** Warnings told one by one, at first and after a quiet time. */
const BURST = 10
/** One more is let through after so long, in milliseconds. */
const EVERY_MS = 10_000

export class Warnings {
  readonly #tell: (reason: string) => void
  readonly #now: () => number
  #left = BURST
  #refilled: number
  #heldBack = 0

  /** @param now a monotonic clock in milliseconds */
  constructor(tell: (reason: string) => void, now: () => number) {
    this.#tell = tell
    this.#now = now
    this.#refilled = now()
  }

  warn(reason: string): void {
    const now = this.#now()
    const refill = Math.floor((now - this.#refilled) / EVERY_MS)
    this.#refilled += refill * EVERY_MS
    this.#left = Math.min(BURST, this.#left + refill)
    if (this.#left === 0) {
      this.#heldBack++
      return
    }
    this.#left--
    const more = this.#heldBack === 0 ? '' : ` (and ${this.#heldBack} more warnings that were held back)`
    const silence = this.#left === 0 ? `; further ones are told every ${EVERY_MS / 1000} s at most` : ''
    this.#heldBack = 0
    this.#tell(reason + more + silence)
  }
}

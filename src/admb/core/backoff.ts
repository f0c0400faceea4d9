/** Waits before a node repeats what may have been lost. */
const MIN_WAIT = 4
const MAX_WAIT = 64

/**
 * Exponential backoff for retries, in periods. The first wait is a little longer than a round trip,
 * each further one doubles.
 */
export class Backoff {
  #since = 0
  #wait = MIN_WAIT

  /** @param roundTrip measured round-trip time in periods */
  start(period: number, roundTrip: number): void {
    this.#since = period
    this.#wait = MIN_WAIT + 2 * roundTrip
  }

  isDue(period: number): boolean {
    return period - this.#since >= this.#wait
  }

  advance(period: number): void {
    this.#since = period
    this.#wait = Math.max(this.#wait, Math.min(MAX_WAIT, this.#wait * 2))
  }
}

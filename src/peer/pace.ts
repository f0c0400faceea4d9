/** Limits the rate of inputs by a token bucket, which holds at most the inputs of one second. */
export class Pace {
  readonly #rate: number
  #credit = 0
  #last: number

  /**
   * @param rate inputs per second; Infinity for no limit
   * @param now milliseconds of a monotonic clock
   */
  constructor(rate: number, now: number) {
    this.#rate = rate
    this.#last = now
  }

  /** Number of inputs that may be taken now. */
  due(now: number): number {
    if (this.#rate === Number.POSITIVE_INFINITY) return this.#rate
    this.#credit = Math.min(this.#rate + 1, this.#credit + ((now - this.#last) * this.#rate) / 1000)
    this.#last = now
    return Math.floor(this.#credit)
  }

  take(count: number): void {
    if (this.#rate !== Number.POSITIVE_INFINITY) this.#credit -= count
  }

  /** Milliseconds until the next input is due. */
  get wait(): number {
    return Math.max(1, ((1 - this.#credit) * 1000) / this.#rate)
  }
}

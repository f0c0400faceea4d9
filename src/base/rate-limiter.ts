/** Token buckets by key. Bounded: full buckets are dropped. */

/** Number of keys above which full buckets are dropped. */
const maxKeys = 4096

export class RateLimiter {
  readonly #perMs: number
  readonly #burst: number
  readonly #now: () => number
  readonly #buckets = new Map<string, { tokens: number; at: number }>()

  /**
   * @param perSecond sustained rate; the burst size is twice that
   * @param now monotonic clock in ms
   */
  constructor(perSecond: number, now: () => number) {
    this.#perMs = perSecond / 1000
    this.#burst = 2 * perSecond
    this.#now = now
  }

  /** Takes a token of `key`; returns false if there is none. */
  take(key: string): boolean {
    const now = this.#now()
    let bucket = this.#buckets.get(key)
    if (bucket === undefined) {
      if (this.#buckets.size >= maxKeys) this.#dropFull(now)
      if (this.#buckets.size >= maxKeys) return false
      bucket = { tokens: this.#burst, at: now }
      this.#buckets.set(key, bucket)
    }
    bucket.tokens = Math.min(this.#burst, bucket.tokens + (now - bucket.at) * this.#perMs)
    bucket.at = now
    if (bucket.tokens < 1) return false
    bucket.tokens -= 1
    return true
  }

  #dropFull(now: number): void {
    for (const [key, bucket] of this.#buckets) {
      if (bucket.tokens + (now - bucket.at) * this.#perMs >= this.#burst) this.#buckets.delete(key)
    }
  }
}

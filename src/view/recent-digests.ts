/**
 * A sample of the predictors that a peer held recently. With many updates per second, two statuses rarely contain the same current
 * predictor, but peers that follow one predictor have held common ones. All peers sample alike (update numbers divisible by
 * higher powers of two are kept), so common predictors remain in the samples.
 */
import { MAX_TRAIL } from './status.js'

export interface HeldPredictor {
  readonly updates: number
  /** Digest of the content, hexadecimal. */
  readonly digest: string
}

/** Maximum number of predictors in a window. */
const MAX_HELD = 1024
/** Published digits of a digest, enough to distinguish predictors for display. */
const DIGEST_DIGITS = 8

export class RecentDigests {
  #held: HeldPredictor[] = []

  add(...held: readonly HeldPredictor[]): void {
    this.#held.push(...held)
    if (this.#held.length > 4 * MAX_TRAIL) this.#held = thin(this.#held, 2 * MAX_TRAIL)
  }

  /** Sample of the predictors added since the last call. */
  take(): readonly HeldPredictor[] {
    const held = thin(this.#held, MAX_TRAIL)
    this.#held = []
    return held
  }
}

/** The predictors that a peer held within some time, with short digests. */
export class HeldWindow {
  #held: { readonly at: number; readonly updates: number; readonly digest: string }[] = []

  add(held: readonly HeldPredictor[], now: number): void {
    for (const { updates, digest } of held)
      this.#held.push({ at: now, updates, digest: digest.slice(0, DIGEST_DIGITS) })
  }

  /** The current one, then those of the last `ms`, the newest first. */
  sample(current: HeldPredictor, now: number, ms: number): [updates: number, digest: string][] {
    this.#held = this.#held.slice(-MAX_HELD)
    const recent = this.#held.filter(({ at }) => now - at <= ms).toReversed()
    const all = [{ ...current, digest: current.digest.slice(0, DIGEST_DIGITS) }, ...recent]
    return all.map(({ updates, digest }) => [updates, digest])
  }
}

function thin(held: readonly HeldPredictor[], count: number): HeldPredictor[] {
  if (held.length <= count) return [...held]
  return [...held].sort((a, b) => divisibility(b.updates) - divisibility(a.updates)).slice(0, count)
}

/** The largest power of two that divides a number. */
export function divisibility(updates: number): number {
  if (updates === 0) return Number.MAX_SAFE_INTEGER
  let power = 1
  while (updates % (2 * power) === 0) power *= 2
  return power
}

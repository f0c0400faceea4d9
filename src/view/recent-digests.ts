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

  /** Short digests of the current predictor and of `take`. */
  publish(now: HeldPredictor): string[] {
    const digests = this.take().map(short)
    return [...new Set([short(now), ...digests])].slice(0, MAX_TRAIL)
  }
}

const short = ({ digest }: HeldPredictor) => digest.slice(0, DIGEST_DIGITS)

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

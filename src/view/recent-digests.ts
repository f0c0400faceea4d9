/**
 * The predictors that a peer held lately, thinned. Two statuses hardly ever name the same predictor, since there are many
 * updates a second; but peers of one predictor have held some in common. All peers thin alike (update numbers divisible by
 * higher powers of two stay), so that what is common stays as well.
 */
import { MAX_TRAIL } from './status.js'

export interface HeldPredictor {
  readonly updates: number
  /** Of the content, in hexadecimal digits. */
  readonly digest: string
}

/** Digits of a digest that are told: enough to tell predictors apart for a picture. */
const DIGEST_DIGITS = 8

export class RecentDigests {
  #held: HeldPredictor[] = []

  add(...held: readonly HeldPredictor[]): void {
    this.#held.push(...held)
    if (this.#held.length > 4 * MAX_TRAIL) this.#held = thin(this.#held, 2 * MAX_TRAIL)
  }

  /** What was added since the last call, thinned. */
  take(): readonly HeldPredictor[] {
    const held = thin(this.#held, MAX_TRAIL)
    this.#held = []
    return held
  }

  /** The same as short digests, with the predictor held now. */
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
function divisibility(updates: number): number {
  if (updates === 0) return Number.POSITIVE_INFINITY
  let power = 1
  while (updates % (2 * power) === 0) power *= 2
  return power
}

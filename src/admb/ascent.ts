/**
 * Decides whether gradients of others that increase the loss of own recent inputs are used. A single increase must be significant;
 * smaller ones add up over predictors, as in the test of Page, "Continuous inspection schemes" (1954). Honest gradients decrease the
 * loss, and what they add by chance cancels.
 */
import { type PredictorId, sameId } from './predictor-id.js'

/** Standard errors above which a single increase is significant. */
const SINGLE = 4
/** Standard errors that are subtracted from each increase, and the sum above which increases are significant together. */
const ALLOWANCE = 0.5
const TOGETHER = 8
/** What a predictor adds to the sum at least and at most: one sum of few inputs proves little, and trust returns slowly. */
const LEAST_ADDED = -1
const MOST_ADDED = 3.5
/** The sum grows no further, so that a neighbour that has changed is trusted again after some predictors. */
const MOST_TOGETHER = 24
/** Predictors in a row at which the gradients of a peer are refused, before that is lasting. Sums of few inputs can be bad by chance. */
const LASTING = 3
/** Number of peers that are remembered. */
const MEMORY = 1024

interface Evidence {
  /** Predictor to which the last increase belongs. */
  readonly at: PredictorId
  /** Sum of the increases, and number of predictors in a row with a refusal, at earlier predictors and with this one. */
  readonly before: Total
  readonly now: Total
}

interface Total {
  readonly sum: number
  readonly refusals: number
}

const NONE: Total = { sum: 0, refusals: 0 }

export class AscentTest {
  /** By peer, the one judged last at the end. */
  readonly #evidence = new Map<string, Evidence>()

  /**
   * Whether gradients may be used. A further increase at the same predictor replaces the last one.
   * @param peer from which they come
   * @param at the predictor to which they belong
   * @param increase of the loss, in standard errors
   */
  accepts(peer: string, at: PredictorId, increase: number): boolean {
    const last = this.#evidence.get(peer)
    const before = last === undefined ? NONE : sameId(last.at, at) ? last.before : last.now
    const added = Math.min(MOST_ADDED, Math.max(LEAST_ADDED, increase - ALLOWANCE))
    const sum = Math.min(MOST_TOGETHER, Math.max(0, before.sum + added))
    const isAccepted = increase <= SINGLE && sum <= TOGETHER
    this.#evidence.delete(peer)
    this.#evidence.set(peer, { at, before, now: { sum, refusals: isAccepted ? 0 : before.refusals + 1 } })
    const [oldest] = this.#evidence.keys()
    if (this.#evidence.size > MEMORY) this.#evidence.delete(oldest)
    return isAccepted
  }

  /** Whether the last gradients of the peer were refused, and those at earlier predictors as well. */
  isLasting(peer: string): boolean {
    return (this.#evidence.get(peer)?.now.refusals ?? 0) >= LASTING
  }
}

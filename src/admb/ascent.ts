/**
 * Decides whether gradients of others that increase the loss of own recent inputs are used. A single increase must be significant;
 * smaller ones add up over predictors, as in the test of Page, "Continuous inspection schemes" (1954). Honest gradients decrease the
 * loss, and what they add by chance cancels.
 *
 * The own sums are a control. If they increase the loss of the own recent inputs as well, because the inputs change or the model fits
 * almost all of them, increases say less, and more is allowed.
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
/** Limits are so many times the mean square of the increases by own sums, but never lower than without a control: that of chance is ½. */
const SCALE = 2
/** The mean square before the first own sum, number of own sums of which it is the mean, and largest increase that counts. */
const FIRST_SQUARE = 1
const OWN_SUMS = 32
const MOST_OWN = 20

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

/** How much the own sums, one of each predictor, increase the loss of own recent inputs. */
export class OwnAscents {
  #square = FIRST_SQUARE

  /** @param increase of the loss by the own sum, in standard errors */
  add(increase: number): void {
    const positive = Math.min(MOST_OWN, Math.max(0, increase))
    this.#square += (positive * positive - this.#square) / OWN_SUMS
  }

  /** Factor of what is allowed to others, at least 1. */
  get scale(): number {
    return Math.max(1, SCALE * this.#square)
  }
}

export class AscentTest {
  readonly #own: Pick<OwnAscents, 'scale'>
  /** By peer, the one judged last at the end. */
  readonly #evidence = new Map<string, Evidence>()

  constructor(own: Pick<OwnAscents, 'scale'>) {
    this.#own = own
  }

  /**
   * Whether gradients may be used. A further increase at the same predictor replaces the last one.
   * @param peer from which they come
   * @param at the predictor to which they belong
   * @param measured increase of the loss, in standard errors
   */
  accepts(peer: string, at: PredictorId, measured: number): boolean {
    const increase = measured / this.#own.scale
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

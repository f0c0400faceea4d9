/**
 * The share of a peer's gradients that no batch uses. It is large if predictors change faster than the peer's sums reach the
 * others, for example because another peer is much faster or b is small for the delays.
 */
import type { LearningSpec } from '../task/learning-spec.js'

/** Interval of samples, and the time over which the share is measured, in ms. */
const SAMPLE_MS = 1000
const WINDOW_MS = 60_000
/** Minimum time, inputs and updates of the predictor for a meaningful share. */
const LEAST_MS = 20_000
const LEAST_INPUTS = 20
const LEAST_UPDATES = 20
/** Share above which there is a warning. */
const WARNING_SHARE = 0.5
/** Minimum time between two warnings in the log, in ms. */
const WARNING_MS = 600_000

interface Sample {
  readonly at: number
  readonly inputs: number
  readonly discarded: number
  readonly updates: number
}

export class DiscardWatch {
  readonly #advice: string
  readonly #warn: (reason: string) => void
  readonly #samples: Sample[] = []
  #warnedAt = Number.NEGATIVE_INFINITY

  /** @param advice what to do about a large share */
  constructor(advice: string, warn: (reason: string) => void) {
    this.#advice = advice
    this.#warn = warn
  }

  /** Share of the gradients of the last minute, 0 to 1; 0 while there are too few. */
  get share(): number {
    const [first, last] = [this.#samples[0], this.#samples.at(-1)]
    if (last === undefined || last.at - first.at < LEAST_MS) return 0
    if (last.inputs - first.inputs < LEAST_INPUTS || last.updates - first.updates < LEAST_UPDATES) return 0
    return Math.min(1, (last.discarded - first.discarded) / (last.inputs - first.inputs))
  }

  /** What to do if most gradients are discarded; undefined otherwise. */
  get warning(): string | undefined {
    const { share } = this
    if (share <= WARNING_SHARE) return undefined
    const percent = Math.round(100 * share)
    return `${percent} % of this peer's gradients come too late for a batch: ${this.#advice} on all peers`
  }

  /**
   * @param inputs number of learned inputs
   * @param discarded number of inputs whose gradients were discarded
   * @param updates number of updates of the predictor
   */
  add(sample: Sample): void {
    const { at } = sample
    const last = this.#samples.at(-1)
    if (last !== undefined && at - last.at < SAMPLE_MS) return
    this.#samples.push(sample)
    while (at - this.#samples[0].at > WINDOW_MS) this.#samples.shift()
    const { warning } = this
    if (warning === undefined || at - this.#warnedAt < WARNING_MS) return
    this.#warnedAt = at
    this.#warn(warning)
  }
}

/** What a peer can do about gradients that come too late. */
export function discardAdvice({ batch, batchMax, model }: LearningSpec): string {
  if (batchMax !== undefined) return `use a range that ends above --batch ${batch}..${batchMax}`
  return model === 'network' ? `use a larger --batch than ${batch}` : `use --batch auto, or a larger one than ${batch},`
}

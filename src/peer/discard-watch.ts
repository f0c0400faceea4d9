/**
 * The share of a peer's gradients that no batch uses. It is large if predictors change faster than the peer's sums reach the
 * others, for example because another peer is much faster or b is small for the delays.
 */

/** Interval of samples, and the time over which the share is measured, in ms. */
const SAMPLE_MS = 1000
const WINDOW_MS = 60_000
/** Minimum time and inputs for a meaningful share. */
const LEAST_MS = 20_000
const LEAST_INPUTS = 20
/** Share above which there is a warning. */
const WARNING_SHARE = 0.5
/** Minimum time between two warnings in the log, in ms. */
const WARNING_MS = 600_000

interface Sample {
  readonly at: number
  readonly inputs: number
  readonly discarded: number
}

export class DiscardWatch {
  readonly #batch: number
  readonly #warn: (reason: string) => void
  readonly #samples: Sample[] = []
  #warnedAt = Number.NEGATIVE_INFINITY

  /** @param batch b */
  constructor(batch: number, warn: (reason: string) => void) {
    this.#batch = batch
    this.#warn = warn
  }

  /** Share of the gradients of the last minute, 0 to 1; 0 while there are too few. */
  get share(): number {
    const [first, last] = [this.#samples[0], this.#samples.at(-1)]
    if (last === undefined || last.at - first.at < LEAST_MS || last.inputs - first.inputs < LEAST_INPUTS) return 0
    return Math.min(1, (last.discarded - first.discarded) / (last.inputs - first.inputs))
  }

  /** What to do if most gradients are discarded; undefined otherwise. */
  get warning(): string | undefined {
    const { share } = this
    if (share <= WARNING_SHARE) return undefined
    // The time in which a gradient can be used grows with the time between two updates, and that with b.
    const fitting = 2 ** Math.ceil(Math.log2(this.#batch / Math.max(0.01, 1 - share)))
    const percent = Math.round(100 * share)
    return `${percent} % of this peer's gradients come too late for a batch: use --batch ${fitting} or more on all peers`
  }

  /** @param inputs number of learned inputs, and of those whose gradients were discarded */
  add({ at, inputs, discarded }: Sample): void {
    const last = this.#samples.at(-1)
    if (last !== undefined && at - last.at < SAMPLE_MS) return
    this.#samples.push({ at, inputs, discarded })
    while (at - this.#samples[0].at > WINDOW_MS) this.#samples.shift()
    const { warning } = this
    if (warning === undefined || at - this.#warnedAt < WARNING_MS) return
    this.#warnedAt = at
    this.#warn(warning)
  }
}

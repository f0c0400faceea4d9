/** Detects that the progressive loss rises: the data have changed, and the model no longer fits them. */
import { Adwin, type Change } from './adwin.js'

export const driftTests = ['adwin'] as const
export type DriftTest = (typeof driftTests)[number]

/** An alarm: the mean level of the loss rose. The level of a loss is 1 − e^(−loss), for log-loss the probability of a mistake. */
export interface DriftAlarm extends Change {
  /** Inputs when it was noticed. */
  readonly inputs: number
}

/** The alarms of a run. */
export interface Drift {
  readonly test: DriftTest
  /** Number of alarms. */
  readonly alarms: number
  /** The newest alarms, at most `ALARMS_KEPT`, oldest first. */
  readonly recent: readonly DriftAlarm[]
}

export const ALARMS_KEPT = 20

/** Values of a group that ADWIN does not cut, and groups between two tests. */
const GROUP = 32
const GROUPS_PER_TEST = 2
/** Inputs after an alarm in which further rises belong to it. */
const SAME_ALARM = 1000
/** Losses without a natural unit are measured in units of the mean of that many first ones. */
const SCALED_BY = 1000

export class DriftDetector {
  readonly #adwin = new Adwin()
  /** Unit of the losses; undefined until it is known. */
  #unit: number | undefined
  #alarms = 0
  #recent: DriftAlarm[] = []
  #inputs = 0
  #first = 0
  #firstSum = 0
  #count = 0
  #sum = 0
  #squares = 0
  #groups = 0

  /** @param hasUnit whether losses are of the order of one; a squared error may have any scale */
  constructor(hasUnit: boolean) {
    if (hasUnit) this.#unit = 1
  }

  get drift(): Drift {
    return { test: 'adwin', alarms: this.#alarms, recent: this.#recent }
  }

  /** Adds the loss of an input, or the mean loss of some that were scored together. @param inputs their number */
  add(loss: number, inputs = 1): void {
    this.#inputs += inputs
    const unit = this.#unit
    if (unit === undefined) this.#learnUnit(loss)
    else this.#observe(1 - Math.exp(-Math.max(0, loss) / unit))
  }

  /** Adds the level of an input's loss: for log-loss, the probability that was given to the wrong class. */
  addLevel(level: number): void {
    this.#inputs++
    this.#observe(level)
  }

  /** Counts inputs whose loss is part of the last one. */
  skip(inputs: number): void {
    this.#inputs += inputs
  }

  #learnUnit(loss: number): void {
    this.#firstSum += loss
    if (++this.#first === SCALED_BY) this.#unit = this.#firstSum / SCALED_BY || 1
  }

  #observe(level: number): void {
    this.#sum += level
    this.#squares += level * level
    if (++this.#count === GROUP) this.#closeGroup()
  }

  #closeGroup(): void {
    this.#adwin.add({ count: GROUP, sum: this.#sum, squares: this.#squares })
    this.#count = this.#sum = this.#squares = 0
    if (++this.#groups % GROUPS_PER_TEST === 0) this.#note(this.#adwin.shrink())
  }

  /** A falling loss is learning, not drift. */
  #note(change: Change | undefined): void {
    if (change === undefined || change.after <= change.before) return
    const last = this.#recent.at(-1)
    if (last !== undefined && this.#inputs - last.inputs < SAME_ALARM) return
    this.#alarms++
    this.#recent = [...this.#recent, { inputs: this.#inputs, ...change }].slice(-ALARMS_KEPT)
  }
}

/** Reports each alarm once. */
export class DriftLog {
  #reported = 0

  /** The alarms since the last call, of those that are kept. */
  take(drift: Drift | undefined): readonly DriftAlarm[] {
    if (drift === undefined || drift.alarms === this.#reported) return []
    const added = Math.min(drift.alarms - this.#reported, drift.recent.length)
    this.#reported = drift.alarms
    return drift.recent.slice(-added)
  }
}

/** Such as `drift after 12345 inputs: the level of the loss rose from 0.210 to 0.342`. */
export function describeAlarm({ inputs, before, after }: DriftAlarm): string {
  return `drift after ${inputs} inputs: the level of the loss rose from ${before.toFixed(3)} to ${after.toFixed(3)}`
}

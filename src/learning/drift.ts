/**
 * Detection of drift: the progressive loss rises, so the data have changed and the model no longer fits them. ADWIN is a window
 * of the newest values whose mean has not changed.
 */
import * as z from 'zod'
import { count, share, type ValueOf } from '../base/schema.js'

export const driftTests = ['adwin'] as const
export type DriftTest = (typeof driftTests)[number]

export const driftSchema = z
  .object({
    test: z.enum(driftTests),
    alarms: count.describe('Rises of the loss that were detected in this run.'),
    recent: z
      .array(
        z.object({
          inputs: count.describe('Inputs when it was noticed.'),
          before: share.describe('Mean level before.'),
          after: share.describe('Mean level after.')
        })
      )
      .describe('The last 20 alarms, oldest first.')
  })
  .describe('Rises of the level 1 − e^(−loss), for log-loss the probability of a mistake, in this run.')
/**
 * The alarms of a run.
 * @interface
 */
export type Drift = ValueOf<typeof driftSchema>
/** An alarm: the mean level of the loss rose. */
export type DriftAlarm = Drift['recent'][number]

const ALARMS_KEPT = 20

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

/** Sums over some consecutive values. */
interface Sums {
  readonly count: number
  readonly sum: number
  /** Sum of the squares. */
  readonly squares: number
}

/**
 * ADWIN: a window of the newest values whose mean has not changed (Bifet and Gavaldà, "Learning from Time-Changing Data with
 * Adaptive Windowing", SDM 2007; ADWIN2 with the bound of section 3). It keeps sums of exponentially growing groups of values, so
 * n values take O(log n) memory and O(1) amortised time, and a test of the window takes O(log n).
 */
interface AdwinOptions {
  /** δ: bound of the probability of a false cut. @default 0.002 */
  readonly delta?: number
  /** M: buckets of one size, at least 1. More make the tested cuts denser. @default 5 */
  readonly buckets?: number
}

/** A cut of the window. */
interface Change {
  /** Mean of the values that were dropped. */
  readonly before: number
  /** Mean of the values that remain. */
  readonly after: number
}

/** Values on each side of a tested cut. */
const LEAST = 5

export class Adwin {
  readonly #delta: number
  readonly #most: number
  /** Row r holds buckets of 2^r groups, oldest first. The oldest buckets are those of the last row. */
  readonly #rows: Sums[][] = [[]]
  #count = 0
  #sum = 0
  #squares = 0

  constructor({ delta = 0.002, buckets = 5 }: AdwinOptions = {}) {
    this.#delta = delta
    this.#most = buckets
  }

  /** Number of values in the window. */
  get count(): number {
    return this.#count
  }

  get mean(): number {
    return this.#count === 0 ? 0 : this.#sum / this.#count
  }

  /** Variance of the window. */
  get variance(): number {
    return this.#count === 0 ? 0 : Math.max(0, this.#squares / this.#count - this.mean ** 2)
  }

  /** Number of buckets that are kept. */
  get buckets(): number {
    return this.#rows.reduce((sum, row) => sum + row.length, 0)
  }

  /** Adds a group of values from [0, 1], inside of which the window is never cut. */
  add(group: Sums): void {
    this.#count += group.count
    this.#sum += group.sum
    this.#squares += group.squares
    const rows = this.#rows
    rows[0].push(group)
    for (let r = 0; rows[r].length > this.#most; r++) {
      const [a, b] = [rows[r].shift() as Sums, rows[r].shift() as Sums]
      if (r + 1 === rows.length) rows.push([])
      rows[r + 1].push({ count: a.count + b.count, sum: a.sum + b.sum, squares: a.squares + b.squares })
    }
  }

  /**
   * Drops the oldest values until no two parts of the window have different means.
   * @returns undefined if nothing was dropped
   */
  shrink(): Change | undefined {
    let count = 0
    let sum = 0
    while (this.#hasCut()) {
      const oldest = this.#dropOldest()
      count += oldest.count
      sum += oldest.sum
    }
    return count === 0 ? undefined : { before: sum / count, after: this.mean }
  }

  #hasCut(): boolean {
    const total = this.#count
    if (total < 2 * LEAST) return false
    const log = Math.log((2 * Math.log(total)) / this.#delta)
    // The bound of the paper times n0·n1, so that no cut needs a division.
    const spread = 2 * this.variance * log * total
    const least = (2 / 3) * log * total
    let n0 = 0
    let s0 = 0
    for (let r = this.#rows.length - 1; r >= 0; r--) {
      for (const { count, sum } of this.#rows[r]) {
        n0 += count
        s0 += sum
        const n1 = total - n0
        if (n1 < LEAST) return false
        const excess = Math.abs(s0 * total - this.#sum * n0) - least
        if (excess > 0 && n0 >= LEAST && excess * excess > spread * n0 * n1) return true
      }
    }
    return false
  }

  #dropOldest(): Sums {
    const rows = this.#rows
    const oldest = rows[rows.length - 1].shift() as Sums
    while (rows.length > 1 && rows[rows.length - 1].length === 0) rows.pop()
    this.#count -= oldest.count
    this.#sum -= oldest.sum
    this.#squares -= oldest.squares
    return oldest
  }
}

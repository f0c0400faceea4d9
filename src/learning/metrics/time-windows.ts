/**
 * Figures over the last minutes or hours. A window is a ring of buckets of equal length, each with the counts of its outcomes, so an
 * input costs constant time, and the memory depends on neither the number of inputs nor the length of the window.
 */
import { OptionError } from '../options.js'
import { type Figures, type OutcomeKind, widthOf } from './confusion.js'
import { createTally, figuresOf, type Tally } from './tallies.js'

/** Buckets of a window. It holds between 59 and 60 of them, because the last one is incomplete. */
const BUCKETS = 60
/** Bins of a score per unit: coarser than elsewhere, because there are many buckets. */
const RESOLUTION = 32
/** Outcomes of a bucket that are not counted yet. */
const UNCOUNTED = 128
/** So many inputs in sequence before the longest window mean that the times start again, as with another file. */
const RESTART = 100
/** Lengths of windows in seconds. */
const LEAST_SECONDS = 1
const MOST_WINDOWS = 4

/** Whether inputs have the times of a column, or those of their arrival. */
export type Clock = 'rows' | 'arrival'

/** Lengths of the windows in seconds unless others are given: an hour and a day of the rows' times, or the last minute and hour. */
const TIME_WINDOWS: Readonly<Record<Clock, readonly number[]>> = {
  rows: [3600, 86_400],
  arrival: [60, 3600]
}

/** Figures over the inputs within some time. */
export interface TimeWindowFigures extends Figures {
  /** Length of the window. */
  readonly seconds: number
}

/** Figures over windows that end at the greatest time so far, or now. */
export interface TimeFigures {
  readonly clock: Clock
  readonly windows: readonly TimeWindowFigures[]
  /** Times of rows: the greatest one, ISO 8601 in UTC; absent before the first. */
  readonly until?: string
  /** Times of rows: inputs that were older than the longest window when they were learned. */
  readonly late?: number
  /** Times of rows: inputs without a valid time. They are in no window. */
  readonly undated?: number
}

/** @throws OptionError for lengths that cannot be used */
export function checkWindows(seconds: readonly number[]): void {
  const isValid = seconds.every(length => Number.isFinite(length) && length >= LEAST_SECONDS)
  if (isValid && seconds.length >= 1 && seconds.length <= MOST_WINDOWS) return
  throw new OptionError(`windows must be 1 to ${MOST_WINDOWS} times of at least ${LEAST_SECONDS} s`)
}

/** The outcomes of a bucket: the first ones as they are, because counts of scores take 16 kB, and counts from then on. */
class Bucket {
  inputs = 0
  weight = 0
  loss = 0
  readonly #kind: OutcomeKind
  readonly #width: number
  /** Outcomes, each followed by its weight. */
  readonly #first: Float64Array
  #rows = 0
  #tally: Tally | undefined

  /** @param index time divided by the length of a bucket, rounded down */
  constructor(
    kind: OutcomeKind,
    public index: number
  ) {
    this.#kind = kind
    this.#width = widthOf(kind) + 1
    this.#first = new Float64Array(UNCOUNTED * this.#width)
  }

  /** Empties the bucket. */
  begin(index: number): void {
    this.index = index
    this.inputs = 0
    this.weight = 0
    this.loss = 0
    this.#rows = 0
    this.#tally = undefined
  }

  /** Adds the outcomes in [from, to) of `entries`. @param loss their sum, without the weight */
  add(entries: Float64Array, from: number, to: number, weight: number, loss: number): void {
    const width = this.#width
    const rows = (to - from) / (width - 1)
    this.inputs += rows
    this.weight += rows * weight
    this.loss += weight * loss
    if (this.#tally === undefined && this.#rows + rows <= UNCOUNTED) {
      let at = this.#rows * width
      for (let i = from; i < to; at++) {
        for (let k = 1; k < width; k++) this.#first[at++] = entries[i++]
        this.#first[at] = weight
      }
      this.#rows += rows
      return
    }
    if (this.#tally === undefined) {
      const tally = createTally(this.#kind, RESOLUTION)
      this.addTo(tally)
      this.#tally = tally
    }
    this.#tally.add(entries, from, to, weight)
  }

  /** Adds what it holds to a tally of the same resolution. */
  addTo(tally: Tally): void {
    const width = this.#width
    if (this.#tally !== undefined) tally.merge(this.#tally)
    else {
      for (let at = 0; at < this.#rows * width; at += width)
        tally.add(this.#first, at, at + width - 1, this.#first[at + width - 1])
    }
  }
}

class TimeWindow {
  /** A bucket is at its index modulo `BUCKETS`. */
  #buckets: (Bucket | undefined)[] = []
  readonly #width: number

  constructor(
    readonly seconds: number,
    private readonly kind: OutcomeKind
  ) {
    this.#width = (1000 * seconds) / BUCKETS
  }

  clear(): void {
    this.#buckets = []
  }

  /** Whether an input is too old for a window that ends at `end`. */
  excludes(time: number, end: number): boolean {
    return Math.floor(time / this.#width) <= Math.floor(end / this.#width) - BUCKETS
  }

  /** The bucket of a time. */
  at(time: number): Bucket {
    const index = Math.floor(time / this.#width)
    const place = ((index % BUCKETS) + BUCKETS) % BUCKETS
    this.#buckets[place] ??= new Bucket(this.kind, index)
    const bucket = this.#buckets[place]
    if (bucket.index !== index) bucket.begin(index)
    return bucket
  }

  figures(end: number): TimeWindowFigures {
    const last = Math.floor(end / this.#width)
    const buckets = this.#buckets.filter(
      bucket => bucket !== undefined && bucket.index <= last && bucket.index > last - BUCKETS && bucket.inputs > 0
    ) as Bucket[]
    if (buckets.length === 0) return { seconds: this.seconds, inputs: 0, loss: 0 }
    const tally = createTally(this.kind, RESOLUTION)
    let [inputs, weight, loss] = [0, 0, 0]
    for (const bucket of buckets) {
      bucket.addTo(tally)
      inputs += bucket.inputs
      weight += bucket.weight
      loss += bucket.loss
    }
    return { seconds: this.seconds, ...figuresOf(this.kind, inputs, weight > 0 ? loss / weight : 0, tally) }
  }
}

/** Windows by time over the outcomes of a learner. */
export class TimeWindows {
  readonly #clock: Clock
  readonly #windows: readonly TimeWindow[]
  readonly #longest: TimeWindow
  /** Times of the rows whose outcomes follow, and the next of them. */
  #times: ArrayLike<number> | undefined
  #labels: ArrayLike<number> | undefined
  #next = 0
  /** The time of arrival, or the greatest time of a row; −∞ before the first. */
  #end = Number.NEGATIVE_INFINITY
  #late = 0
  #undated = 0
  /** Late inputs since the last one that was not. */
  #lateInRow = 0

  /** @param seconds lengths @throws OptionError for lengths that cannot be used */
  constructor(kind: OutcomeKind, clock: Clock, seconds: readonly number[] = TIME_WINDOWS[clock]) {
    checkWindows(seconds)
    this.#clock = clock
    this.#windows = [...new Set(seconds)].sort((a, b) => a - b).map(length => new TimeWindow(length, kind))
    this.#longest = this.#windows[this.#windows.length - 1]
  }

  /** Further outcomes arrive at this time, and windows end here. @param now in milliseconds, not before that of the last call */
  arrive(now: number): void {
    this.#end = now
  }

  /**
   * Further outcomes are those of these rows.
   * @param times in milliseconds since 1970, NaN for unknown ones @default all are unknown
   * @param labels rows whose label is NaN have no outcome @default all have one
   */
  date(times: ArrayLike<number> | undefined, from: number, labels?: ArrayLike<number>): void {
    this.#times = times
    this.#labels = labels
    this.#next = from
  }

  /** Adds outcomes of one weight. @param lossOf the loss of the outcome at a position in `entries` */
  add(entries: Float64Array, rows: number, width: number, weight: number, lossOf: (at: number) => number): void {
    if (this.#clock === 'arrival') {
      let loss = 0
      for (let i = 0; i < rows * width; i += width) loss += lossOf(i)
      for (const window of this.#windows) window.at(this.#end).add(entries, 0, rows * width, weight, loss)
      return
    }
    for (let at = 0; at < rows * width; at += width) {
      const time = this.#take()
      if (!this.#accepts(time)) continue
      const loss = lossOf(at)
      for (const window of this.#windows) {
        if (!window.excludes(time, this.#end)) window.at(time).add(entries, at, at + width, weight, loss)
      }
    }
  }

  /** Figures at the time of the last input or `arrive`. */
  get figures(): TimeFigures {
    const windows = this.#windows.map(window => window.figures(this.#end))
    if (this.#clock === 'arrival') return { clock: 'arrival', windows }
    const until = Number.isFinite(this.#end) ? { until: new Date(this.#end).toISOString() } : {}
    return { clock: 'rows', windows, ...until, late: this.#late, undated: this.#undated }
  }

  /** The time of the next row that has an outcome. */
  #take(): number {
    const [times, labels] = [this.#times, this.#labels]
    if (times === undefined) return Number.NaN
    if (labels !== undefined) while (Number.isNaN(labels[this.#next])) this.#next++
    return times[this.#next++] ?? Number.NaN
  }

  /** Whether an input with this time belongs to a window. Moves the end of the windows. */
  #accepts(time: number): boolean {
    if (Number.isNaN(time)) {
      this.#undated++
      return false
    }
    if (time >= this.#end) this.#end = time
    else if (this.#longest.excludes(time, this.#end)) {
      this.#lateInRow++
      if (this.#lateInRow < RESTART) {
        this.#late++
        return false
      }
      for (const window of this.#windows) window.clear()
      this.#end = time
    }
    this.#lateInRow = 0
    return true
  }
}

/**
 * Figures over the last minutes or hours. A window is a ring of buckets of equal length, each with the counts of its outcomes, so an
 * input costs constant time, and the memory depends on neither the number of inputs nor the length of the window.
 */
import { type OutcomeKind, widthOf } from './confusion.js'
import type { TimeFigures, TimeWindowFigures } from './figures.js'
import { createTally, figuresOf, type Tally } from './tallies.js'

/** Buckets of a window. It holds between 59 and 60 of them, because the last one is incomplete. */
const BUCKETS = 60
/** Bins of a score per unit: coarser than elsewhere, because there are many buckets. */
const RESOLUTION = 32
/** Outcomes of a bucket that are not counted yet. */
const UNCOUNTED = 128
/** Lengths of the windows in seconds: the last minute and hour. */
const SECONDS = [60, 3600] as const

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

  /** Adds the first outcomes of `entries`, up to `to`. @param loss their sum, without the weight */
  add(entries: Float64Array, to: number, weight: number, loss: number): void {
    const width = this.#width
    const rows = to / (width - 1)
    this.inputs += rows
    this.weight += rows * weight
    this.loss += weight * loss
    if (this.#tally === undefined && this.#rows + rows <= UNCOUNTED) {
      let at = this.#rows * width
      for (let i = 0; i < to; at++) {
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
    this.#tally.add(entries, 0, to, weight)
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
  readonly #buckets: (Bucket | undefined)[] = []
  readonly #width: number

  constructor(
    readonly seconds: number,
    private readonly kind: OutcomeKind
  ) {
    this.#width = (1000 * seconds) / BUCKETS
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

/** Windows over the outcomes of a learner by the time of their arrival. */
export class TimeWindows {
  readonly #windows: readonly TimeWindow[]
  readonly #width: number
  /** The present. */
  #end = Number.NEGATIVE_INFINITY

  constructor(kind: OutcomeKind) {
    this.#width = widthOf(kind)
    this.#windows = SECONDS.map(length => new TimeWindow(length, kind))
  }

  /** Further outcomes arrive at this time, and windows end here. @param now in milliseconds, not before that of the last call */
  arrive(now: number): void {
    this.#end = now
  }

  /** Adds outcomes of one weight. @param loss their sum, without the weight */
  add(entries: Float64Array, rows: number, weight: number, loss: number): void {
    for (const window of this.#windows) window.at(this.#end).add(entries, rows * this.#width, weight, loss)
  }

  /** Figures at the time of the last `arrive`. */
  get figures(): TimeFigures {
    return { clock: 'arrival', windows: this.#windows.map(window => window.figures(this.#end)) }
  }
}

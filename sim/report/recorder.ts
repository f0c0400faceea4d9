/** Records the timeline of a run in bounded memory. */
import type { PredictorId } from '../../src/admb/index.js'
import type { Fault, PredictorCause, RunObserver, Scenario } from '../index.js'
import { AWAY, type PredictorEntry, type Timeline } from './timeline.js'
import { WindowRecorder } from './window.js'

/** Maximum number of rows of a plot. */
const MAX_ROWS = 64
/** At twice this number, every other snapshot is removed. */
const SNAPSHOTS = 120
/** Maximum numbers of partitions, and of predictor ids; the oldest ids are removed. */
const MAX_CUTS = 500
const MAX_IDS = 4096

const AWAY_FROM: ReadonlySet<string> = new Set(['crash', 'pause', 'leave'])
const BACK_AT: ReadonlySet<string> = new Set(['restart', 'resume', 'join'])
const START: PredictorEntry = { id: 0, updates: 0, maker: undefined }

export class TimelineRecorder {
  readonly #watched: readonly number[]
  readonly #held: PredictorEntry[]
  readonly #isAway: boolean[]
  readonly #ids = new Map<string, PredictorEntry>()
  readonly #start: WindowRecorder
  #fault: WindowRecorder | undefined
  #faultIsCut = false
  #snapshots: Int32Array[] = []
  #step: number
  #maxUpdates = 0
  #predictorCount = 0
  readonly #cuts: { readonly from: number; until: number }[] = []
  #isCut = false

  constructor({ nodes, inputs, interval }: Scenario) {
    const rows = Math.min(nodes, MAX_ROWS)
    this.#watched = Array.from({ length: rows }, (_, row) => Math.floor((row * nodes) / rows))
    this.#held = new Array(nodes).fill(START)
    this.#isAway = new Array(nodes).fill(false)
    this.#step = ((inputs / nodes) * interval) / SNAPSHOTS
    this.#start = this.#open('start', 0)
  }

  /** The observer to pass to `simulate`. */
  get observer(): RunObserver {
    return {
      onPredictorChange: (time, node, id, cause) => this.#predictorChanged(time, node, id, cause),
      onFault: (time, fault) => this.#faultInjected(time, fault)
    }
  }

  /** @returns undefined for an algorithm that does not identify its predictors */
  finish(until: number): Timeline | undefined {
    if (this.#predictorCount === 0) return undefined
    this.#takeSnapshots(until)
    if (this.#isCut) this.#cuts[this.#cuts.length - 1].until = until
    const windows = [this.#start, this.#fault].flatMap(window => window?.finish(until) ?? [])
    return { watched: this.#watched, step: this.#step, snapshots: this.#snapshots, cuts: this.#cuts, windows }
  }

  #predictorChanged(time: number, node: number, id: PredictorId, cause: PredictorCause): void {
    this.#takeSnapshots(time)
    const held = this.#identify(node, id, cause)
    this.#held[node] = held
    this.#isAway[node] = false
    this.#maxUpdates = Math.max(this.#maxUpdates, held.updates)
    for (const window of this.#windows()) window.change(time, node, held, this.#maxUpdates)
  }

  #faultInjected(time: number, fault: Fault): void {
    this.#takeSnapshots(time)
    const { kind } = fault
    if ('node' in fault) {
      if (!AWAY_FROM.has(kind) && !BACK_AT.has(kind)) return
      // The window of the start already shows the first faults.
      if (AWAY_FROM.has(kind) && this.#start.isOver) this.#fault ??= this.#open('fault', time)
      this.#isAway[fault.node] = AWAY_FROM.has(kind)
      const held = this.#isAway[fault.node] ? undefined : this.#held[fault.node]
      for (const window of this.#windows()) window.change(time, fault.node, held, this.#maxUpdates)
    } else if ('sides' in fault) {
      if (!this.#faultIsCut) {
        this.#faultIsCut = true
        this.#fault = this.#open('fault', time, fault.sides)
      }
      if (!this.#isCut && this.#cuts.length < MAX_CUTS) {
        this.#isCut = true
        this.#cuts.push({ from: time, until: time })
      }
      for (const window of this.#windows()) window.mark({ time, what: 'cut' })
    } else if (kind === 'heal') {
      if (this.#isCut) this.#cuts[this.#cuts.length - 1].until = time
      this.#isCut = false
      for (const window of this.#windows()) window.mark({ time, what: 'healed' })
    }
  }

  #open(kind: 'start' | 'fault', time: number, sides?: ArrayLike<number>): WindowRecorder {
    const held = this.#watched.map(node => (this.#isAway[node] ? undefined : this.#held[node]))
    return new WindowRecorder({ kind, from: time, watched: this.#watched, held, maxUpdates: this.#maxUpdates, sides })
  }

  #windows(): readonly WindowRecorder[] {
    return this.#fault === undefined ? [this.#start] : [this.#start, this.#fault]
  }

  #identify(
    node: number,
    { updates, origin, incarnation, digest }: PredictorId,
    cause: PredictorCause
  ): PredictorEntry {
    if (updates === 0) return START
    const key = `${updates} ${origin} ${incarnation} ${digest}`
    let held = this.#ids.get(key)
    if (held === undefined) {
      // The node that makes a predictor is recorded first, so an unknown predictor that was not made here comes from a disk.
      held = { id: ++this.#predictorCount, updates, maker: cause === 'updated' ? node : undefined }
      this.#ids.set(key, held)
      const [oldest] = this.#ids.keys()
      if (this.#ids.size > MAX_IDS) this.#ids.delete(oldest)
    }
    return held
  }

  /** Takes the snapshots that are due. */
  #takeSnapshots(time: number): void {
    while (this.#snapshots.length * this.#step <= time) {
      this.#snapshots.push(
        Int32Array.from(this.#watched, node =>
          this.#isAway[node] ? AWAY : Math.max(0, this.#maxUpdates - this.#held[node].updates)
        )
      )
      if (this.#snapshots.length < 2 * SNAPSHOTS) continue
      this.#snapshots = this.#snapshots.filter((_, index) => index % 2 === 0)
      this.#step *= 2
    }
  }
}

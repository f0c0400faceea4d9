/** Watches a run and keeps its timeline, in bounded memory however long the run. */

import type { PredictorId } from '../../src/admb/index.js'
import type { Fault, Observer, Scenario } from '../index.js'
import { AWAY, type PredictorEntry, type Timeline } from './timeline.js'
import { WindowRecorder } from './window.js'

/** Rows that a plot can show. */
const MOST_WATCHED = 64
/** Snapshots are thinned out when there are twice as many. */
const SNAPSHOTS = 120
/** Cuts that are kept, and predictors' ids, oldest first to go. */
const MOST_CUTS = 500
const MOST_IDS = 4096

const AWAY_FROM: ReadonlySet<string> = new Set(['crash', 'pause', 'leave'])
const BACK_AT: ReadonlySet<string> = new Set(['restart', 'resume', 'join'])
const NOTHING: PredictorEntry = { id: 0, updates: 0, maker: undefined }

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
  #front = 0
  #made = 0
  readonly #cuts: { readonly from: number; until: number }[] = []
  #isCut = false

  constructor({ nodes, inputs, interval }: Scenario) {
    const rows = Math.min(nodes, MOST_WATCHED)
    this.#watched = Array.from({ length: rows }, (_, row) => Math.floor((row * nodes) / rows))
    this.#held = new Array(nodes).fill(NOTHING)
    this.#isAway = new Array(nodes).fill(false)
    this.#step = ((inputs / nodes) * interval) / SNAPSHOTS
    this.#start = this.#open('start', 0)
  }

  /** What to hand to `simulate`. */
  get observer(): Observer {
    return {
      holds: (time, node, id, how) => this.#holds(time, node, id, how),
      fault: (time, fault) => this.#strikes(time, fault)
    }
  }

  /** @returns nothing for an algorithm that does not name its predictors */
  finish(until: number): Timeline | undefined {
    if (this.#made === 0) return undefined
    this.#snap(until)
    if (this.#isCut) this.#cuts[this.#cuts.length - 1].until = until
    const windows = [this.#start, this.#fault].flatMap(window => window?.finish(until) ?? [])
    return { watched: this.#watched, step: this.#step, snapshots: this.#snapshots, cuts: this.#cuts, windows }
  }

  #holds(time: number, node: number, id: PredictorId, how: 'updated' | 'adopted' | 'restarted'): void {
    this.#snap(time)
    const held = this.#identify(node, id, how)
    this.#held[node] = held
    this.#isAway[node] = false
    this.#front = Math.max(this.#front, held.updates)
    for (const window of this.#windows()) window.change(time, node, held, this.#front)
  }

  #strikes(time: number, fault: Fault): void {
    this.#snap(time)
    const { kind } = fault
    if ('node' in fault) {
      if (!AWAY_FROM.has(kind) && !BACK_AT.has(kind)) return
      // The view of the start has the first ones already.
      if (AWAY_FROM.has(kind) && this.#start.isOver) this.#fault ??= this.#open('fault', time)
      this.#isAway[fault.node] = AWAY_FROM.has(kind)
      const held = this.#isAway[fault.node] ? undefined : this.#held[fault.node]
      for (const window of this.#windows()) window.change(time, fault.node, held, this.#front)
    } else if ('sides' in fault) {
      if (!this.#faultIsCut) {
        this.#faultIsCut = true
        this.#fault = this.#open('fault', time, fault.sides)
      }
      if (!this.#isCut && this.#cuts.length < MOST_CUTS) {
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
    return new WindowRecorder({ kind, from: time, watched: this.#watched, held, front: this.#front, sides })
  }

  #windows(): readonly WindowRecorder[] {
    return this.#fault === undefined ? [this.#start] : [this.#start, this.#fault]
  }

  #identify(node: number, { updates, origin, incarnation, digest }: PredictorId, how: string): PredictorEntry {
    if (updates === 0) return NOTHING
    const key = `${updates} ${origin} ${incarnation} ${digest}`
    let held = this.#ids.get(key)
    if (held === undefined) {
      // Every node hears of a predictor from its maker on, so whoever has an unknown one without making it had it on disk.
      held = { id: ++this.#made, updates, maker: how === 'updated' ? node : undefined }
      this.#ids.set(key, held)
      const [oldest] = this.#ids.keys()
      if (this.#ids.size > MOST_IDS) this.#ids.delete(oldest)
    }
    return held
  }

  /** Snapshots of all moments up to now. */
  #snap(time: number): void {
    while (this.#snapshots.length * this.#step <= time) {
      this.#snapshots.push(
        Int32Array.from(this.#watched, node =>
          this.#isAway[node] ? AWAY : Math.max(0, this.#front - this.#held[node].updates)
        )
      )
      if (this.#snapshots.length < 2 * SNAPSHOTS) continue
      this.#snapshots = this.#snapshots.filter((_, index) => index % 2 === 0)
      this.#step *= 2
    }
  }
}

/** A window of a run for its space-time view: which predictor each node held, from the start or from the first partition. */
import type { PredictorId } from '../../src/admb/index.js'
import type { Fault, RunObserver, Scenario } from '../index.js'

/** An interval in which a node did not change, in virtual ms. */
export interface Span {
  readonly node: number
  readonly from: number
  readonly until: number
  /** The predictor; undefined while the node was away. */
  readonly held: PredictorEntry | undefined
}

export interface PredictorEntry {
  /** Number of the predictor in order of creation; 0 is the starting predictor. */
  readonly id: number
  readonly updates: number
}

/** A network-wide event. */
interface Mark {
  readonly time: number
  readonly what: 'cut' | 'healed'
}

export interface Timeline {
  readonly from: number
  readonly until: number
  /** Nodes from top to bottom, grouped by the sides of a partition; evenly spaced ones if there are many. */
  readonly order: readonly number[]
  readonly spans: readonly Span[]
  readonly marks: readonly Mark[]
}

/** Records a window of a timeline, from a given time until it fills a plot. */
const MAX_SPANS = 3000
/** Number of updates after which a window without a partition ends. */
const MAX_UPDATES = 24
/** Time recorded after the end of a partition, as a share of its length. */
const RECOVERY_SHARE = 0.4

interface WindowStart {
  readonly from: number
  readonly watched: readonly number[]
  /** Predictor of each recorded node at the start of the window. */
  readonly held: readonly (PredictorEntry | undefined)[]
  /** Side of every node, if the window starts with a partition. */
  readonly sides?: ArrayLike<number>
}

class WindowRecorder {
  readonly #start: WindowStart
  readonly #rows: ReadonlyMap<number, number>
  readonly #since: number[]
  readonly #held: (PredictorEntry | undefined)[]
  readonly #spans: Span[] = []
  readonly #marks: Mark[] = []
  #until = Number.POSITIVE_INFINITY
  #isOver = false

  constructor(start: WindowStart) {
    this.#start = start
    this.#rows = new Map(start.watched.map((node, row) => [node, row]))
    this.#since = start.watched.map(() => start.from)
    this.#held = [...start.held]
  }

  /** Records that a node has another predictor or is away. @param maxUpdates updates of the best predictor of all nodes */
  change(time: number, node: number, held: PredictorEntry | undefined, maxUpdates: number): void {
    if (this.#closesBy(time)) return
    const row = this.#rows.get(node)
    if (row === undefined) return
    this.#end(row, time)
    this.#held[row] = held
    const { sides, from } = this.#start
    const isFull = this.#spans.length >= MAX_SPANS - this.#held.length
    if ((isFull || (sides === undefined && maxUpdates >= MAX_UPDATES)) && time > from) this.#close(time)
  }

  mark(mark: Mark): void {
    if (this.#closesBy(mark.time)) return
    this.#marks.push(mark)
    const { sides, from } = this.#start
    if (mark.what === 'healed' && sides !== undefined && this.#until === Number.POSITIVE_INFINITY)
      this.#until = mark.time + RECOVERY_SHARE * (mark.time - from)
  }

  /** @param until end of the run */
  finish(until: number): Timeline {
    if (!this.#isOver) this.#close(Math.min(until, this.#until))
    const { from, watched, sides } = this.#start
    const side = (node: number) => sides?.[node] ?? 0
    const order = [...watched].sort((a, b) => side(a) - side(b) || a - b)
    return { from, until: this.#until, order, spans: this.#spans, marks: this.#marks }
  }

  #closesBy(time: number): boolean {
    if (!this.#isOver && time > this.#until) this.#close(this.#until)
    return this.#isOver
  }

  #close(time: number): void {
    this.#isOver = true
    this.#until = time
    for (const row of this.#held.keys()) this.#end(row, time)
  }

  /** Ends the current span of a row. */
  #end(row: number, time: number): void {
    const from = this.#since[row]
    if (time > from) this.#spans.push({ node: this.#start.watched[row], from, until: time, held: this.#held[row] })
    this.#since[row] = time
  }
}

/** Maximum number of rows of a plot. */
const MAX_ROWS = 64
/** Maximum number of predictor ids; the oldest ones are removed. */
const MAX_IDS = 4096

const AWAY_FROM: ReadonlySet<string> = new Set(['crash', 'pause', 'leave'])
const BACK_AT: ReadonlySet<string> = new Set(['restart', 'resume', 'join'])
const START: PredictorEntry = { id: 0, updates: 0 }

/** Records the timeline of a run in bounded memory: from the start, or from the first partition if there is one. */
export class TimelineRecorder {
  readonly #watched: readonly number[]
  readonly #held: PredictorEntry[]
  readonly #isAway: boolean[]
  readonly #ids = new Map<string, PredictorEntry>()
  #window: WindowRecorder
  #startsWithCut = false
  #maxUpdates = 0
  #predictorCount = 0

  constructor({ nodes }: Scenario) {
    const rows = Math.min(nodes, MAX_ROWS)
    this.#watched = Array.from({ length: rows }, (_, row) => Math.floor((row * nodes) / rows))
    this.#held = new Array(nodes).fill(START)
    this.#isAway = new Array(nodes).fill(false)
    this.#window = this.#open(0)
  }

  /** The observer to pass to `simulate`. */
  get observer(): RunObserver {
    return {
      onPredictorChange: (time, node, id) => {
        const held = this.#identify(id)
        this.#held[node] = held
        this.#isAway[node] = false
        this.#maxUpdates = Math.max(this.#maxUpdates, held.updates)
        this.#window.change(time, node, held, this.#maxUpdates)
      },
      onFault: (time, fault) => this.#faultInjected(time, fault)
    }
  }

  /** @returns undefined for an algorithm that does not identify its predictors */
  finish(until: number): Timeline | undefined {
    return this.#predictorCount === 0 ? undefined : this.#window.finish(until)
  }

  #faultInjected(time: number, fault: Fault): void {
    const { kind } = fault
    if ('node' in fault) {
      if (!AWAY_FROM.has(kind) && !BACK_AT.has(kind)) return
      this.#isAway[fault.node] = AWAY_FROM.has(kind)
      this.#window.change(time, fault.node, this.#heldBy(fault.node), this.#maxUpdates)
    } else if ('sides' in fault) {
      if (!this.#startsWithCut) this.#window = this.#open(time, fault.sides)
      this.#startsWithCut = true
      this.#window.mark({ time, what: 'cut' })
    } else if (kind === 'heal') this.#window.mark({ time, what: 'healed' })
  }

  #open(from: number, sides?: ArrayLike<number>): WindowRecorder {
    const held = this.#watched.map(node => this.#heldBy(node))
    return new WindowRecorder({ from, watched: this.#watched, held, sides })
  }

  #heldBy(node: number): PredictorEntry | undefined {
    return this.#isAway[node] ? undefined : this.#held[node]
  }

  #identify({ updates, origin, incarnation, digest }: PredictorId): PredictorEntry {
    if (updates === 0) return START
    const key = `${updates} ${origin} ${incarnation} ${digest}`
    let held = this.#ids.get(key)
    if (held === undefined) {
      held = { id: ++this.#predictorCount, updates }
      this.#ids.set(key, held)
      const [oldest] = this.#ids.keys()
      if (this.#ids.size > MAX_IDS) this.#ids.delete(oldest)
    }
    return held
  }
}

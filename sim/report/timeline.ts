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

/** Maximum number of rows of a plot, and of its intervals. */
const [MAX_ROWS, MAX_SPANS] = [64, 3000]
/** Number of updates after which a window without a partition ends. */
const MAX_UPDATES = 24
/** Time recorded after the end of a partition, as a share of its length. */
const RECOVERY_SHARE = 0.4
/** Maximum number of predictor ids; the oldest ones are removed. */
const MAX_IDS = 4096

const AWAY_FROM: ReadonlySet<string> = new Set(['crash', 'pause', 'leave'])
const BACK_AT: ReadonlySet<string> = new Set(['restart', 'resume', 'join'])
const START: PredictorEntry = { id: 0, updates: 0 }

/** Records the timeline of a run in bounded memory: from the start, or from the first partition if there is one. */
export class TimelineRecorder {
  /** The rows of the recorded nodes. */
  readonly #rows: ReadonlyMap<number, number>
  /** By node, of all nodes. */
  readonly #held: PredictorEntry[]
  readonly #isAway: boolean[]
  readonly #ids = new Map<string, PredictorEntry>()
  #predictorCount = 0
  #maxUpdates = 0
  /** Side of every node, if the window starts with a partition. */
  #sides: ArrayLike<number> | undefined
  #from = 0
  #until = Number.POSITIVE_INFINITY
  #isOver = false
  /** Start of the current span of each row, and what its node holds. */
  #open: { from: number; held: PredictorEntry | undefined }[] = []
  #spans: Span[] = []
  #marks: Mark[] = []

  constructor({ nodes }: Scenario) {
    const rows = Math.min(nodes, MAX_ROWS)
    this.#rows = new Map(Array.from({ length: rows }, (_, row) => [Math.floor((row * nodes) / rows), row]))
    this.#held = new Array(nodes).fill(START)
    this.#isAway = new Array(nodes).fill(false)
    this.#begin(0)
  }

  /** The observer to pass to `simulate`. */
  get observer(): RunObserver {
    return {
      onPredictorChange: (time, node, id) => {
        this.#held[node] = this.#identify(id)
        this.#isAway[node] = false
        this.#maxUpdates = Math.max(this.#maxUpdates, this.#held[node].updates)
        this.#change(time, node)
      },
      onFault: (time, fault) => this.#faultInjected(time, fault)
    }
  }

  /** @returns undefined for an algorithm that does not identify its predictors */
  finish(until: number): Timeline | undefined {
    if (this.#predictorCount === 0) return undefined
    if (!this.#isOver) this.#close(Math.min(until, this.#until))
    const side = (node: number) => this.#sides?.[node] ?? 0
    const order = [...this.#rows.keys()].sort((a, b) => side(a) - side(b) || a - b)
    return { from: this.#from, until: this.#until, order, spans: this.#spans, marks: this.#marks }
  }

  #faultInjected(time: number, fault: Fault): void {
    const { kind } = fault
    if ('node' in fault) {
      if (!AWAY_FROM.has(kind) && !BACK_AT.has(kind)) return
      this.#isAway[fault.node] = AWAY_FROM.has(kind)
      this.#change(time, fault.node)
    } else if ('sides' in fault) {
      if (this.#sides === undefined) this.#begin(time, fault.sides)
      if (this.#records(time)) this.#marks.push({ time, what: 'cut' })
    } else if (kind === 'heal' && this.#records(time)) {
      this.#marks.push({ time, what: 'healed' })
      if (this.#sides !== undefined && this.#until === Number.POSITIVE_INFINITY)
        this.#until = time + RECOVERY_SHARE * (time - this.#from)
    }
  }

  #begin(from: number, sides?: ArrayLike<number>): void {
    this.#from = from
    this.#sides = sides
    this.#until = Number.POSITIVE_INFINITY
    this.#isOver = false
    this.#spans = []
    this.#marks = []
    this.#open = [...this.#rows.keys()].map(node => ({ from, held: this.#heldBy(node) }))
  }

  /** A node has another predictor, or is away or back. */
  #change(time: number, node: number): void {
    const row = this.#rows.get(node)
    if (row === undefined || !this.#records(time)) return
    this.#endSpan(node, row, time)
    this.#open[row] = { from: time, held: this.#heldBy(node) }
    const isFull = this.#spans.length >= MAX_SPANS - this.#rows.size
    const isLong = this.#sides === undefined && this.#maxUpdates >= MAX_UPDATES
    if ((isFull || isLong) && time > this.#from) this.#close(time)
  }

  #heldBy(node: number): PredictorEntry | undefined {
    return this.#isAway[node] ? undefined : this.#held[node]
  }

  /** Whether the window is open at this time. */
  #records(time: number): boolean {
    if (!this.#isOver && time > this.#until) this.#close(this.#until)
    return !this.#isOver
  }

  #close(time: number): void {
    this.#isOver = true
    this.#until = time
    for (const [node, row] of this.#rows) this.#endSpan(node, row, time)
  }

  #endSpan(node: number, row: number, until: number): void {
    const { from, held } = this.#open[row]
    if (until > from) this.#spans.push({ node, from, until, held })
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

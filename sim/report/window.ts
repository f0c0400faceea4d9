/** Records a window of a timeline, from a given time until it fills a plot. */
import type { Mark, PredictorEntry, Span, Timeline } from './timeline.js'

const MAX_SPANS = 3000
/** Number of updates after which a window without a partition ends. */
const MAX_UPDATES = 24
/** Time recorded after the end of a partition, as a share of its length. */
const RECOVERY_SHARE = 0.4

export interface WindowStart {
  readonly from: number
  readonly watched: readonly number[]
  /** Predictor of each recorded node at the start of the window. */
  readonly held: readonly (PredictorEntry | undefined)[]
  /** Side of every node, if the window starts with a partition. */
  readonly sides?: ArrayLike<number>
}

export class WindowRecorder {
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

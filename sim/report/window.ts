/** One window of a timeline, kept in full: from a moment on, until enough has happened to fill a plot. */
import type { Mark, PredictorEntry, Span, Window } from './timeline.js'

/** What a plot can show and a page can carry. */
const MOST_SPANS = { start: 1500, fault: 3000 }
/** Updates after which a window without a cut is over. */
const MOST_UPDATES = 24
/** How long the healed network is watched, as a share of the cut's length. */
const AFTERMATH = 0.4

export interface WindowStart {
  readonly kind: 'start' | 'fault'
  readonly from: number
  readonly watched: readonly number[]
  /** What each watched node holds as the window opens. */
  readonly held: readonly (PredictorEntry | undefined)[]
  /** Updates of the best predictor then. */
  readonly front: number
  /** Side of every node, if a cut opened the window. */
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

  get isOver(): boolean {
    return this.#isOver
  }

  /** A node holds something else from now on, or is away. @param front updates of the best predictor anywhere */
  change(time: number, node: number, held: PredictorEntry | undefined, front: number): void {
    if (this.#closesBy(time)) return
    const row = this.#rows.get(node)
    if (row === undefined) return
    this.#end(row, time)
    this.#held[row] = held
    const { kind, sides, from } = this.#start
    const isFull = this.#spans.length >= MOST_SPANS[kind] - this.#held.length
    if ((isFull || (sides === undefined && front >= this.#start.front + MOST_UPDATES)) && time > from) this.#close(time)
  }

  mark(mark: Mark): void {
    if (this.#closesBy(mark.time)) return
    this.#marks.push(mark)
    const { sides, from } = this.#start
    if (mark.what === 'healed' && sides !== undefined && this.#until === Number.POSITIVE_INFINITY)
      this.#until = mark.time + AFTERMATH * (mark.time - from)
  }

  /** @param until end of the run */
  finish(until: number): Window {
    if (!this.#isOver) this.#close(Math.min(until, this.#until))
    const { kind, from, watched, sides } = this.#start
    const side = (node: number) => sides?.[node] ?? 0
    const order = [...watched].sort((a, b) => side(a) - side(b) || a - b)
    return { kind, from, until: this.#until, order, spans: this.#spans, marks: this.#marks }
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

  /** What a row held is over. */
  #end(row: number, time: number): void {
    const from = this.#since[row]
    if (time > from) this.#spans.push({ node: this.#start.watched[row], from, until: time, held: this.#held[row] })
    this.#since[row] = time
  }
}

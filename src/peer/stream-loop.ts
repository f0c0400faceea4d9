/** Learns a peer's stream at its pace, in slices of a few milliseconds, pass after pass. */
import type { ExampleStream, Rows } from '../data/index.js'
import { ChunkSize } from './chunk-size.js'
import { type LearnerContext, SLICE_MS } from './learner-context.js'
import { Pace } from './pace.js'
import { streamKey } from './stream-progress.js'

export class StreamLoop {
  readonly #context: LearnerContext
  /** Whether the predictor has changed since frames were sent. */
  readonly #hasChanged: () => boolean
  readonly pace: Pace
  readonly chunk = new ChunkSize()
  #stream: ExampleStream | undefined
  #hasEnded = false

  constructor(context: LearnerContext, hasChanged: () => boolean) {
    this.#context = context
    this.#hasChanged = hasChanged
    this.pace = new Pace(context.init.rate ?? Number.POSITIVE_INFINITY, context.now())
  }

  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** Whether the stream has new inputs, which must not wait for repeated ones. */
  get isBusy(): boolean {
    return !this.#hasEnded && this.#stream !== undefined
  }

  /** Malformed inputs so far. */
  get skipped(): number {
    return this.#stream?.skipped ?? 0
  }

  /**
   * Learns from the stream until it ends or the peer stops.
   * @param stream unscaled rows. They are scaled here row by row, so that the moments are those of the learned rows
   * @param pause yields to the event loop for some milliseconds
   */
  async run(stream: ExampleStream, pause: (ms: number) => Promise<void>): Promise<void> {
    const { init, node, training, progress, now, isStopping, flush, room, notice } = this.#context
    const { pace, chunk } = this
    this.#stream = stream
    progress.begin(stream.isReplayable)
    const name = init.stream?.data === '-' ? 'standard input' : (init.stream?.data ?? 'the stream')
    const { resume } = progress
    const before = typeof resume === 'number' ? resume : (resume?.rows ?? 0)
    if (stream.isReplayable && before > 0)
      notice(`${name}: resumes after ${before} rows, at update ${node.predictor.id.updates}`)
    if (!stream.isReplayable && progress.inputs > 0) {
      const learned = `${progress.inputs} inputs were learned before this run`
      notice(`${name} cannot be replayed: it is read from its first line (${learned})`)
    }
    let until = now() + SLICE_MS
    let pass: number | undefined
    for await (const rows of stream) {
      if (rows.pass !== pass || pass === undefined) {
        if (!this.#beginPass(rows, pass === undefined)) break
        pass = rows.pass ?? 0
      }
      let row = 0
      for (;;) {
        if (isStopping()) return
        const start = now()
        const due = row < rows.size ? pace.due(start) : 0
        const to = Math.min(rows.size, row + due, row + chunk.rows, row + node.room)
        if (to > row) {
          training.learn(rows, row, to)
          chunk.took(to - row, now() - start)
          pace.take(to - row)
          progress.read(rows, row, to)
          row = to
          // An update is passed on at once, but not before the position in the stream is behind all inputs that were counted.
          if (this.#hasChanged()) flush()
        } else if (row < rows.size) {
          await (node.room === 0 ? room() : pause(pace.wait))
          until = now() + SLICE_MS
        }
        if (now() >= until) {
          await pause(0)
          until = now() + SLICE_MS
        }
        if (row === rows.size) break
      }
    }
    this.#hasEnded = true
    const { useless } = progress
    if (useless !== undefined) notice(`${name}: ${useless}`)
  }

  /** A pass over the data begins. @returns whether its rows may be learned */
  #beginPass({ pass = 0, positionAfter }: Rows, isFirst: boolean): boolean {
    const { init, node, progress, budget, notice } = this.#context
    if (budget === undefined) return true
    const { resume } = progress
    const isContinued =
      isFirst && typeof resume === 'object' && resume.rows > 0 && positionAfter?.(0).rows === resume.rows
    const stream = init.stream ? streamKey(init.stream) : ''
    // An input must not be twice in a segment.
    if (budget.beginPass({ stream, number: pass }, isContinued)) node.closeSegment()
    if (!budget.isExhausted) return true
    const { epsilon, releases } = budget.status
    notice(
      `the privacy budget is spent (epsilon ${epsilon}, ${releases} ${releases === 1 ? 'pass' : 'passes'} over the data): this peer learns no more inputs, it only predicts and relays`
    )
    return false
  }
}

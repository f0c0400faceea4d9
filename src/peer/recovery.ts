/**
 * Learns inputs again, beside the stream, that no batch of the lineage has used: those of earlier runs, and those that a jump to another
 * lineage has left unused.
 */
import type { ExampleStream, Rows, StreamPosition } from '../data/index.js'
import { type InputLog, type InputPiece, restored } from './input-log.js'
import type { LearnerContext } from './learner-context.js'
import type { StreamLoop } from './stream-loop.js'

/** Milliseconds of learning between two turns of the event loop. Each such slice has a segment of its own. */
const SLICE_MS = 20

interface RecoveryOptions extends LearnerContext {
  readonly inputs: InputLog
  readonly reading: StreamLoop
  /** Resolves when there may be inputs to learn again, or after a stop. */
  readonly idle: () => Promise<void>
  /** Opens the stream at a position. */
  readonly open: (place: StreamPosition) => Promise<ExampleStream>
  /** Yields to the event loop for some milliseconds. */
  readonly pause: (ms: number) => Promise<void>
}

export class Recovery {
  readonly #options: RecoveryOptions
  /** Number of inputs that could not be learned again since the last report. */
  #lost = 0

  constructor(options: RecoveryOptions) {
    this.#options = options
  }

  /** Resolves after a stop. */
  async run(): Promise<void> {
    const { init, node, inputs, training, budget, flush, isStopping, open, pause, idle } = this.#options
    if (inputs.pending.length > 0) budget?.addRequest()
    for (const piece of inputs.pending) {
      const rows = restored(piece)
      training.learn(rows, 0, rows.size)
    }
    flush()
    // With differential privacy, inputs are not learned again.
    const learnsAgain = budget === undefined
    while (!isStopping()) {
      const range = node.relearnable
      const piece = range && learnsAgain ? inputs.find(...range) : undefined
      if (piece) await this.#learn(piece, piece.rows ? [restored(piece)] : await open(piece.place as StreamPosition))
      else if (range) this.#forget(range[0], learnsAgain ? range[0] + 1 : range[1])
      else {
        this.#reportLost()
        // The others wait for the next predictor.
        if (node.waiting > 0) await pause(init.period)
        else await idle()
      }
    }
  }

  async #learn({ first, count, skip = 0 }: InputPiece, stream: AsyncIterable<Rows> | Iterable<Rows>): Promise<void> {
    const { init, node, driver, reading, isStopping, pause } = this.#options
    let number = first - skip
    for await (const rows of stream) {
      let row = Math.min(rows.size, Math.max(0, first - number))
      const end = Math.min(rows.size, first + count - number)
      while (row < end) {
        if (isStopping()) return
        row = this.#learnSlice(rows, row, end, number)
        driver.flush()
        // The lineage may have changed, and with it what must be learned.
        if (row < end && node.relearnable?.[0] !== number + row) return
        await pause(reading.isBusy || node.room === 0 ? init.period : 0)
      }
      number += rows.size
      if (number >= first + count) return
    }
    // The source is shorter than it was.
    this.#forget(Math.max(first, number), first + count)
  }

  /** @param number number of the first input of the batch @returns the row after the last one that was learned */
  #learnSlice(rows: Rows, from: number, end: number, number: number): number {
    const { node, driver, training, reading, now } = this.#options
    const { chunk } = reading
    const until = now() + SLICE_MS
    return driver.inOwnSegment(() => {
      let row = from
      for (let start = now(); row < end && start < until && node.room > 0; start = now()) {
        const count = Math.min(end - row, chunk.rows, node.room)
        const to = row + count
        row = training.learnAgain(rows, row, to, number + row)
        if (row < to) break
        chunk.took(count, now() - start)
      }
      return row
    })
  }

  #reportLost(): void {
    const { budget, notice, warn } = this.#options
    const lost = this.#lost
    this.#lost = 0
    if (lost === 0) return
    if (budget === undefined) warn(`${lost} inputs that no update has used cannot be read again`)
    else
      notice(
        `${lost} inputs of earlier runs that no update has used are left out: their noisy sums may have been sent (--dp)`
      )
  }

  #forget(first: number, end: number): void {
    this.#options.node.forget(first, end)
    this.#lost += end - first
  }
}

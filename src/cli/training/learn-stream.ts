/** Trains on a stream until its end, an error in the data or of the device, or a signal. */
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import type { Rows } from '../../data/index.js'
import { type Examples, rowsOf, type SerialTrainer } from '../../learning/index.js'
import { InterruptedError } from '../errors.js'

/** Milliseconds of learning between two checks for signals. */
const SLICE_MS = 50

export interface LearningRun {
  readonly stream: AsyncIterable<Rows>
  /** Makes rows [from, to) ready to be learned, in their order. @default they are */
  readonly prepare?: (rows: Rows, from: number, to: number) => Examples
  readonly trainer: Pick<SerialTrainer, 'learn'>
  /** Rows that are learned between two checks for signals. @default whole batches of the stream */
  readonly slice?: number
  /** Whether SIGINT and SIGTERM end the run like an error instead of ending the process. */
  readonly catchesSignals: boolean
  /** Rows until `onLearned` must be called, at least 1. @default no limit */
  readonly rowsLeft?: () => number
  /** Called after some rows were learned. */
  readonly onLearned: () => void
}

/** @returns the error or signal that ended the run before the stream's end */
export async function learnStream(run: LearningRun): Promise<Error | undefined> {
  const stop = new AbortController()
  const onSignal = (signal: string) => stop.abort(new InterruptedError(signal))
  if (run.catchesSignals) process.once('SIGINT', onSignal).once('SIGTERM', onSignal)
  try {
    await learn(run, stop.signal)
    return undefined
  } catch (error) {
    return error as Error
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal)
  }
}

async function learn(run: LearningRun, signal: AbortSignal): Promise<void> {
  const rows = run.stream[Symbol.asyncIterator]()
  try {
    await learnRows(rows, run, signal)
  } finally {
    // A pending read cannot be cancelled, and a signal arrives only once.
    const closed = rows.return?.().catch(() => undefined)
    if (!signal.aborted) await closed
  }
  // Ctrl-C may have ended the process that writes to standard input as well: then the stream is not complete.
  await yieldToEventLoop()
  signal.throwIfAborted()
}

async function learnRows(
  rows: AsyncIterator<Rows>,
  { trainer, slice, prepare = rowsOf, rowsLeft, onLearned }: LearningRun,
  signal: AbortSignal
): Promise<void> {
  let until = performance.now() + SLICE_MS
  for (;;) {
    const { done, value } = await unlessAborted(rows.next(), signal)
    if (done) break
    for (let from = 0, to = 0; from < value.size; from = to) {
      to = from + Math.min(slice ?? value.size, rowsLeft?.() ?? value.size, value.size - from)
      trainer.learn(prepare(value, from, to))
      onLearned()
      if (performance.now() < until) continue
      await yieldToEventLoop()
      signal.throwIfAborted()
      until = performance.now() + SLICE_MS
    }
  }
}

/** Rejects when the signal aborts. The work is not cancelled. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted()
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

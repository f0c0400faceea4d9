/** Learning a stream until something ends it: its end, an error in the data or of the device, or a signal. */
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import type { Examples, SerialTrainer } from '../../learner/index.js'
import { InterruptedError } from '../errors.js'

/** Milliseconds of learning after which a signal is looked for. */
const SLICE_MS = 50

export interface LearningRun {
  readonly stream: AsyncIterable<Examples>
  readonly trainer: Pick<SerialTrainer, 'learn'>
  /** Rows that are learned before a signal is looked for. Default: as they come. */
  readonly slice?: number
  /** Whether SIGINT and SIGTERM end the run like an error. Otherwise they end the process. */
  readonly catchesSignals: boolean
  /** Is called whenever some rows were learned. */
  readonly onLearned: () => void
}

/** @returns what ended the run before the stream's end */
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
    // Who waits for a read cannot be made to end, and a signal comes only once.
    const closed = rows.return?.().catch(() => undefined)
    if (!signal.aborted) await closed
  }
  // What Ctrl-C ended together with whatever wrote to standard input is no whole stream.
  await yieldToEventLoop()
  signal.throwIfAborted()
}

async function learnRows(
  rows: AsyncIterator<Examples>,
  { trainer, slice, onLearned }: LearningRun,
  signal: AbortSignal
): Promise<void> {
  let until = performance.now() + SLICE_MS
  for (;;) {
    const { done, value } = await unlessAborted(rows.next(), signal)
    if (done) break
    for (const part of slices(value, slice)) {
      trainer.learn(part)
      onLearned()
      if (performance.now() < until) continue
      await yieldToEventLoop()
      signal.throwIfAborted()
      until = performance.now() + SLICE_MS
    }
  }
}

/** Waits no longer when the signal comes; the work is then left to itself. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted()
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

/** Views of so many rows each. */
function* slices(examples: Examples, rows = examples.size): Generator<Examples> {
  const { indices, values } = examples
  for (let from = 0; from < examples.size; from += rows) {
    const size = Math.min(rows, examples.size - from)
    if (size === examples.size) yield examples
    else
      yield { size, labels: examples.labels.subarray(from), offsets: examples.offsets.subarray(from), indices, values }
  }
}

/**
 * How far a run of `admb train --dir` has read its data, so that the same command continues after the last row that was learned. Rows
 * since the last update are stored as they are, and learned again.
 */

import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { RowBuffer, type Rows, type StreamOptions } from '../../data/index.js'
import { type Examples, rowsOf, type SerialReport, type SerialTrainer } from '../../learning/index.js'
import { streamKey } from '../../peer/stream-progress.js'
import type { UnfinishedRun } from '../../peer/thread-messages.js'
import { InterruptedError } from '../errors.js'

interface ContinuationOptions {
  /** The stream of this run. */
  readonly stream: StreamOptions
  /** Gradients per update. */
  readonly batch: number
  /** Whether rows without a label are learned. */
  readonly learnsUnlabelled: boolean
  /** State of the run before. */
  readonly earlier: UnfinishedRun | undefined
}

/** Rows of the stream that an unfinished run has read; undefined if it read another stream. */
export function rowsBefore(stream: StreamOptions, earlier: UnfinishedRun | undefined): number | undefined {
  return earlier?.stream === streamKey(stream) ? earlier.rows : undefined
}

export class Continuation {
  readonly #options: ContinuationOptions
  /** Labelled rows since the last update. */
  readonly #pending = new RowBuffer()
  #rows: number
  #isKnown = true

  constructor(options: ContinuationOptions) {
    this.#options = options
    this.#rows = rowsBefore(options.stream, options.earlier) ?? 0
  }

  /** The rows that the run before had not learned completely. */
  get pending(): Examples | undefined {
    const { pending } = this.#options.earlier ?? {}
    if (pending === undefined) return undefined
    const { labels, offsets, indices, values, weights } = pending
    return {
      size: labels.length,
      labels: Float64Array.from(labels),
      offsets: Int32Array.from(offsets),
      indices: Int32Array.from(indices),
      values: Float32Array.from(values),
      weights: weights && Float32Array.from(weights)
    }
  }

  /** Learns rows of the stream, or pending ones. */
  learn(part: Examples, learn: (part: Examples) => void, isPending = false): void {
    // After an error among them it is not known which rows were learned.
    this.#isKnown = false
    learn(part)
    this.#isKnown = true
    if (!isPending) this.#rows += part.size
    this.#note(part)
  }

  /** @returns undefined if it is not known which rows were learned */
  get state(): UnfinishedRun | undefined {
    if (!this.#isKnown) return undefined
    const { size, entries, labels, offsets, indices, values, weights } = this.#pending
    const pending = {
      labels: [...labels.subarray(0, size)],
      offsets: [...offsets.subarray(0, size + 1)],
      indices: [...indices.subarray(0, entries)],
      values: [...values.subarray(0, entries)],
      weights: weights && [...weights.subarray(0, size)]
    }
    return { stream: streamKey(this.#options.stream), rows: this.#rows, pending: size > 0 ? pending : undefined }
  }

  #note(part: Examples): void {
    const { batch, learnsUnlabelled } = this.#options
    if (batch === 1) return
    const learned: number[] = []
    for (let row = 0; row < part.size; row++) {
      if (learnsUnlabelled || !Number.isNaN(part.labels[row])) learned.push(row)
    }
    const before = this.#pending.size
    const left = (before + learned.length) % batch
    if (left < before + learned.length) this.#pending.clear()
    for (const row of learned.slice(Math.max(0, learned.length - left))) this.#pending.append(part, row)
  }
}

/** What was learned since an earlier report, which counts rows of the run before. */
export function reportSince(before: SerialReport, now: SerialReport): SerialReport {
  const weight = now.weight - before.weight
  const mean = (field: 'averageLoss' | 'accuracy') => {
    const sum = (now[field] ?? 0) * now.weight - (before[field] ?? 0) * before.weight
    return weight > 0 && now[field] !== undefined ? sum / weight : undefined
  }
  const [averageLoss, accuracy] = [mean('averageLoss'), mean('accuracy')]
  return { ...now, inputs: now.inputs - before.inputs, weight, averageLoss, accuracy }
}

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

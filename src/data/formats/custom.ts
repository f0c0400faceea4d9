/** Custom readers from plug-ins: named formats for files or any other source that yields inputs one by one. */
import { nextTurn } from '#platform'
import { StreamOptionsError } from '../errors.js'
import { RowBuffer, type Rows } from '../rows.js'
import type { InputOption, InputOptions, Reader } from './format.js'

/** Name of a reader of a plug-in. */
export type CustomFormat = `custom:${string}`

/** One input of a custom reader. */
export interface CustomInput {
  /** Class number from 0, or the number to predict. @default NaN, which means unlabelled */
  readonly label?: number
  /** Importance: the input counts that many times. @default 1 */
  readonly weight?: number
  /** Values of the features 0, 1, …, or values by feature number. */
  readonly features: ArrayLike<number> | ReadonlyMap<number, number>
  /**
   * Where `read` continues after this input, as JSON: it is stored with a peer's state. Inputs without one are skipped after the
   * position before, so they must come in the same order again.
   * @default none
   */
  readonly position?: unknown
}

/** What a reader may use while it reads. */
export interface ReadContext {
  /** Aborts when the stream is stopped: close connections and end. */
  readonly signal: AbortSignal | undefined
  /** Writes a line to the log, such as that inputs are missing. */
  notice(line: string): void
}

/** Inputs from a source that only the plug-in can read. */
export interface CustomReader {
  /** Number of features, if known. Peers need it. */
  readonly dimension?: number
  /** Number of classes, if known. */
  readonly classes?: number
  /** Whether the input can be read again from its start. @default true */
  readonly repeatable?: boolean
  /** Whether inputs have a position, from which another run can continue. @default false */
  readonly hasPositions?: boolean
  /**
   * Whether a position only says where to continue, and earlier inputs cannot be read again, as with a queue. A peer with a state
   * directory then stores the inputs themselves until updates have used them.
   * @default false
   */
  readonly forwardOnly?: boolean
  /** The position after the last input that exists, for `from: 'now'`. @default `now` is refused */
  now?(): unknown
  /**
   * The inputs, in an order that the reader chooses.
   * @param from the position to continue after; undefined for the start
   */
  read(from?: unknown, context?: ReadContext): AsyncIterable<CustomInput> | Iterable<CustomInput>
}

/**
 * Opens the data of a stream.
 * @param data the value of the option `data`, in place of a file name
 */
export type CustomReaderFactory = (data: string) => CustomReader | Promise<CustomReader>

/** The options that custom formats accept, of those that not every input takes. */
export const customInputOptions: readonly InputOption[] = ['dimension', 'classes']

const BATCH_ROWS = 256
const formats = new Map<string, CustomReaderFactory>()

export function isCustomFormat(format: string | undefined): format is CustomFormat {
  return format?.startsWith('custom:') ?? false
}

export function addReader(format: CustomFormat, factory: CustomReaderFactory): void {
  formats.set(format, factory)
}

/** @throws StreamOptionsError if no plug-in provides the format */
export async function openCustom(
  format: CustomFormat,
  data: string,
  { constant = false, signal, onNotice }: InputOptions
): Promise<Reader> {
  const factory = formats.get(format)
  if (factory === undefined) {
    const names = [...formats.keys()].join(', ') || 'none'
    throw new StreamOptionsError(`unknown reader '${format}' (known: ${names}): load the plug-in that provides it`)
  }
  const reader = await factory(data)
  const { dimension, classes, repeatable = true, hasPositions = false, forwardOnly } = reader
  const shift = constant ? 1 : 0
  const context: ReadContext = { signal, notice: line => onNotice?.(line) }
  return {
    dimension: dimension === undefined ? undefined : dimension + shift,
    classes,
    skipped: 0,
    repeatable,
    replayable: repeatable || hasPositions,
    forwardOnly,
    async locate(from) {
      if (from === 'now' && reader.now !== undefined) return reader.now()
      throw new StreamOptionsError(`${format} has no position ${from}: remove the option from`)
    },
    pass: from => batches(reader.read(from, context), `${data} (${format})`, { shift, from, signal })
  }
}

interface BatchOptions {
  readonly shift: number
  /** The position that the inputs follow. */
  readonly from: unknown
  readonly signal: AbortSignal | undefined
}

/** Yields inputs as they arrive, in batches of at most `BATCH_ROWS`. */
async function* batches(
  inputs: AsyncIterable<CustomInput> | Iterable<CustomInput>,
  source: string,
  { shift, from, signal }: BatchOptions
): AsyncGenerator<Rows> {
  const isLive = Symbol.asyncIterator in inputs
  const iterator = isLive ? inputs[Symbol.asyncIterator]() : inputs[Symbol.iterator]()
  const out = new RowBuffer()
  let at = { source: from, skip: 0 }
  let places = [at]
  let before = 0
  const batch = () => {
    const marks = places
    return { ...out.view(), mark: (count: number) => marks[count] }
  }
  const clear = () => {
    before += out.size
    places = [at]
    out.clear()
  }
  let pending: Promise<IteratorResult<CustomInput>> | undefined
  try {
    for (;;) {
      pending ??= unlessAborted(iterator.next(), signal)
      // Rows must not wait for others that may come much later.
      if (isLive && out.size > 0 && (await Promise.race([pending, nextTurn()])) === undefined) {
        yield batch()
        clear()
      }
      const { done, value } = await pending
      pending = undefined
      if (done) break
      append(out, value, shift, () => `${source}: input ${before + out.size + 1}`)
      at = value.position === undefined ? { ...at, skip: at.skip + 1 } : { source: value.position, skip: 0 }
      places.push(at)
      if (out.size < BATCH_ROWS) continue
      yield batch()
      clear()
    }
    if (out.size > 0) yield batch()
  } finally {
    const closed = iterator.return?.()
    // An iterator that waits for an input cannot be closed.
    if (pending === undefined) await closed
  }
}

function unlessAborted<T>(work: T | Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return Promise.resolve(work)
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    Promise.resolve(work)
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', abort))
  })
}

function append(
  out: RowBuffer,
  { label = Number.NaN, weight = 1, features }: CustomInput,
  shift: number,
  where: () => string
): void {
  const entries = features instanceof Map ? [...features] : Array.from(features as ArrayLike<number>, (x, i) => [i, x])
  out.reserve(1, entries.length + shift)
  let at = out.entries
  if (shift === 1) {
    out.indices[at] = 0
    out.values[at++] = 1
  }
  for (const [feature, value] of entries) {
    if (!Number.isInteger(feature) || feature < 0 || !Number.isFinite(Math.fround(value))) {
      throw new StreamOptionsError(
        `${where()}: feature ${feature} is ${value}: a reader must return finite float32 numbers`
      )
    }
    out.indices[at] = feature + shift
    out.values[at++] = value
  }
  if (!(weight >= 0 && Number.isFinite(Math.fround(weight)))) {
    throw new StreamOptionsError(
      `${where()}: the weight is ${weight}: a reader must return finite numbers of at least 0`
    )
  }
  out.weigh(weight)
  out.labels[out.size] = label
  out.numeric[out.size] = 0
  out.entries = at
  out.offsets[++out.size] = at
}

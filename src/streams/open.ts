/**
 * Opens any input as a stream of batches. Rows pass through shard, shuffle, scaling and limit, in this order, each only if the
 * options ask for it.
 */
import { type CustomFormat, customInputOptions, isCustomFormat, openCustom } from './custom.js'
import { StreamOptionsError } from './errors.js'
import type { InputOptions, Reader } from './format.js'
import {
  builtInStreams,
  type Format,
  formatNames,
  formats,
  guessFormat,
  isBuiltIn,
  isText,
  refuseOtherOptions
} from './formats.js'
import { checkInteger } from './options.js'
import { Random } from './random.js'
import type { Rows } from './rows.js'
import { RunningMoments, resolveScale, type Scaling, standardise } from './scale.js'
import { checkSource, sourceName } from './source.js'
import { leaveOut, type Shard, shuffle, takeRows, takeShard } from './stages.js'
import { openText } from './text.js'
import { openTokens, type TokenRows } from './tokens.js'
import type { ExampleStream } from './types.js'

/** Options of a stream: where its rows come from, and in which order and scale. */
export interface StreamOptions extends InputOptions {
  /** A file, `-` for standard input, or a built-in stream: `digits`, `digits:test`, `synthetic`. */
  readonly data: string
  /** @default guessed from the file's name */
  readonly format?: Format | CustomFormat
  /** The share of the rows of each pass, with an index from 0. @default all rows */
  readonly shard?: Shard
  /** Rows for validation, of those of the shard: `learn` leaves every n-th out, `validate` yields only these. @default all rows */
  readonly holdout?: { readonly every: number; readonly part: 'learn' | 'validate' }
  /** How many times the input is read; may be `Infinity`. @default 1 */
  readonly passes?: number
  /** Rows in the shuffle's window, up to 1,000,000. @default no shuffle */
  readonly shuffleWindow?: number
  /** Moments for `scale: 'standard'`. @default the moments of this stream alone */
  readonly scaling?: Scaling
  /** Rows are not scaled, because a later stage does it. @default false */
  readonly scaleLater?: boolean
  /** Number of rows after which the stream ends. @default at the end of the input */
  readonly maxRows?: number
  /** Infers from the first rows of text whether the label is a class or a number, and the names of the classes. @default false */
  readonly inferLabel?: boolean
  /** Rows of tokens that `data` was already converted into. If given, `data` is not read. @default none */
  readonly tokens?: TokenRows
}

/**
 * Opens a stream, which can be iterated once.
 * @example
 * const stream = await openStream({ data: 'mine.csv', label: 'bought', passes: 2 })
 * for await (const { size, labels } of stream) console.log(size, labels[0])
 * @throws StreamOptionsError, UnknownFormatError, MissingInputError, UnreadableInputError, IdxError, HeaderError; while
 * iterating also CorruptGzipError, LineTooLongError and, under `strict`, MalformedInputError
 */
export async function openStream(options: StreamOptions): Promise<ExampleStream> {
  checkStreamOptions(options)
  const progress = new ReadProgress(options.passes ?? 1, options.maxRows ?? Number.POSITIVE_INFINITY)
  const onRead = (share: number) => {
    progress.share = share
  }
  const reader = await openReader({ ...options, onRead })
  if ((options.passes ?? 1) !== 1 && !reader.repeatable) {
    throw new StreamOptionsError(`${sourceName(options.data)} can be read only once: leave passes at 1`)
  }
  let isIterated = false
  return {
    get dimension() {
      return reader.dimension
    },
    classes: options.target === 'number' ? undefined : reader.classes,
    get hashBits() {
      return reader.hashBits
    },
    get schema() {
      return reader.schema
    },
    label: reader.label,
    summary: reader.summary,
    get skipped() {
      return reader.skipped
    },
    get share() {
      return progress.total
    },
    [Symbol.asyncIterator]() {
      if (isIterated) throw new Error('a stream can be iterated only once: open another one')
      isIterated = true
      return compose(reader, options, progress)
    }
  }
}

async function openReader(options: StreamOptions): Promise<Reader> {
  const { data, constant = false, tokens, onRead } = options
  if (tokens !== undefined) return openTokens(tokens, onRead)
  if (isCustomFormat(options.format)) {
    refuseOtherOptions(options.format, customInputOptions, options)
    return openCustom(options.format, data, constant)
  }
  if (isBuiltIn(data)) {
    if (options.format !== undefined) throw new StreamOptionsError(`format has no meaning for ${data}: leave it out`)
    const definition = builtInStreams[data]
    refuseOtherOptions(data, definition.options, options)
    return definition.open(options)
  }
  await checkSource(data)
  const format = options.format ?? guessFormat(data)
  if (!Object.hasOwn(formats, format)) {
    throw new StreamOptionsError(`unknown format '${format}'; expected one of ${formatNames.join(', ')}`)
  }
  refuseOtherOptions(format, formats[format].options, options)
  return isText(format) ? openText(data, format, options) : formats[format].open(data, options)
}

function checkStreamOptions(options: StreamOptions): void {
  const { shard, passes, noise } = options
  if (shard !== undefined) {
    checkInteger('shard count', shard.count, 1, 1_000_000)
    checkInteger('shard index', shard.index, 0, shard.count - 1)
  }
  if (passes !== Number.POSITIVE_INFINITY) checkInteger('passes', passes, 1, Number.MAX_SAFE_INTEGER)
  checkInteger('holdout', options.holdout?.every, 2, 1_000_000)
  checkInteger('shuffleWindow', options.shuffleWindow, 1, 1_000_000)
  checkInteger('seed', options.seed, Number.MIN_SAFE_INTEGER + 1, Number.MAX_SAFE_INTEGER)
  checkInteger('maxRows', options.maxRows, 0, Number.MAX_SAFE_INTEGER)
  if (noise !== undefined && !(noise >= 0 && noise < 1e6)) {
    throw new StreamOptionsError(`noise is ${noise}: give a number of at least 0`)
  }
}

async function* compose(reader: Reader, options: StreamOptions, progress: ReadProgress): AsyncGenerator<Rows> {
  let rows = readPasses(reader, options, progress)
  if (!options.scaleLater && resolveScale(options.scale ?? 'none', reader.schema) === 'standard') {
    rows = standardise(rows, options.scaling ?? { moments: new RunningMoments(), frozen: false })
  }
  if (options.maxRows !== undefined) rows = takeRows(rows, options.maxRows)
  for await (const batch of rows) {
    options.signal?.throwIfAborted()
    progress.rows += batch.size
    yield batch
  }
}

async function* readPasses(reader: Reader, options: StreamOptions, progress: ReadProgress): AsyncGenerator<Rows> {
  const { shard, holdout, passes = 1, shuffleWindow, seed = 0 } = options
  const random = new Random(seed)
  for (let pass = 0; pass < passes; pass++) {
    progress.passes = pass
    if (progress.share !== undefined) progress.share = 0
    let rows = reader.pass()
    if (shard !== undefined) rows = takeShard(rows, shard)
    if (holdout !== undefined) {
      const held = { index: holdout.every - 1, count: holdout.every }
      rows = holdout.part === 'learn' ? leaveOut(rows, held) : takeShard(rows, held)
    }
    if (shuffleWindow !== undefined) rows = shuffle(rows, shuffleWindow, random)
    let isEmpty = true
    for await (const batch of rows) {
      isEmpty = false
      yield batch
    }
    // Infinitely many passes over an empty input would never return.
    if (isEmpty) return
  }
}

/** The share of a stream that has been consumed. */
class ReadProgress {
  /** Passes that are complete. */
  passes = 0
  /** Rows that have been yielded. */
  rows = 0
  /** Of the current pass; undefined if the reader does not report it. */
  share: number | undefined
  readonly #passes: number
  readonly #rows: number

  /** @param passes, rows after which the stream ends; Infinity for no limit */
  constructor(passes: number, rows: number) {
    this.#passes = passes
    this.#rows = rows
  }

  /** From 0 to 1; undefined if the end is not known. */
  get total(): number | undefined {
    const byRows = Number.isFinite(this.#rows) ? this.rows / Math.max(1, this.#rows) : undefined
    const isReported = this.share !== undefined && Number.isFinite(this.#passes)
    const byPasses = isReported ? (this.passes + (this.share as number)) / this.#passes : undefined
    if (byRows === undefined) return byPasses
    return Math.min(1, Math.max(byRows, byPasses ?? 0))
  }
}

/**
 * The way in: from options to a stream of batches, whatever the input. Rows pass, in this order, shard, shuffle, scaling
 * and limit, each only where it is asked for.
 */

import { type CustomFormat, isCustomFormat, openOwn } from './custom.js'
import { openDigits } from './digits.js'
import { StreamOptionsError } from './errors.js'
import { FORMATS, type Format, guessFormat } from './format.js'
import { type IdxOptions, openIdx } from './idx.js'
import { checkInteger } from './options.js'
import { Random } from './random.js'
import { ReadProgress } from './read-progress.js'
import type { Reader } from './reader.js'
import type { Rows } from './rows.js'
import { RunningMoments, type Scaling, standardise } from './scale.js'
import { shuffle } from './shuffle.js'
import { checkSource, sourceName } from './source.js'
import { type Shard, takeRows, takeShard } from './stages.js'
import { openSynthetic } from './synthetic.js'
import { openText } from './text.js'
import { openTokens, type TokenRows } from './tokens.js'
import type { ExampleStream } from './types.js'

export interface StreamOptions extends IdxOptions {
  /** A file, `-` for standard input, or a built-in stream: `digits`, `digits:test`, `synthetic`. */
  readonly data: string
  /** Default: guessed from the file's name. */
  readonly format?: Format | CustomFormat
  /** Which part of the rows of each pass, the index counted from 0. Default: all. */
  readonly shard?: Shard
  /** How often the input is read, `Infinity` for ever. Default 1. */
  readonly passes?: number
  /** Rows that the shuffle keeps at a time, up to 1,000,000. Default: no shuffle. */
  readonly shuffleWindow?: number
  /** Seed of the shuffle and of the built-in streams, a safe integer. Default 0. */
  readonly seed?: number
  /** `standard`: numeric columns of CSV and JSON lines minus mean over deviation of their past. Default `none`. */
  readonly scale?: 'none' | 'standard'
  /** What `standard` scales by. Default: the moments of this stream alone. */
  readonly scaling?: Scaling
  /** The stream ends after so many rows. Default: at the input's end. */
  readonly maxRows?: number
  /** Noise of `synthetic`, see there. */
  readonly noise?: number
  /** Rows of tokens that `data` has been made into already; then it is not read. */
  readonly tokens?: TokenRows
}

/** The options that only some inputs understand. */
const TEXT_ONLY = ['hashBits', 'label', 'ignore', 'categorical', 'classNames', 'columns', 'unlabelled'] as const

/**
 * Opens a stream; it can be iterated once.
 * @throws StreamOptionsError, UnknownFormatError, MissingInputError, UnreadableInputError, IdxError, HeaderError; while
 * iterating also CorruptGzipError, LineTooLongError and, under `strict`, MalformedInputError
 */
export async function openStream(options: StreamOptions): Promise<ExampleStream> {
  checkStreamOptions(options)
  const headway = new ReadProgress(options.passes ?? 1, options.maxRows ?? Number.POSITIVE_INFINITY)
  const onRead = (share: number) => {
    headway.share = share
  }
  const reader = await openReader({ ...options, onRead })
  if ((options.passes ?? 1) !== 1 && !reader.repeatable) {
    throw new StreamOptionsError(`${sourceName(options.data)} can be read only once: leave passes at 1`)
  }
  let isTaken = false
  return {
    get dimension() {
      return reader.dimension
    },
    classes: options.target === 'number' ? undefined : reader.classes,
    get hashBits() {
      return reader.hashBits
    },
    get columns() {
      return reader.columns
    },
    get skipped() {
      return reader.skipped
    },
    get share() {
      return headway.total
    },
    [Symbol.asyncIterator]() {
      if (isTaken) throw new Error('a stream is iterated once: open another')
      isTaken = true
      return compose(reader, options, headway)
    }
  }
}

async function openReader(options: StreamOptions): Promise<Reader> {
  const { data, seed = 0, constant = false, tokens, onRead } = options
  if (tokens !== undefined) return openTokens(tokens, onRead)
  if (isCustomFormat(options.format)) {
    refuse(options, [...TEXT_ONLY, 'labels', 'noise'], options.format)
    refuseScale(options, options.format)
    return openOwn(options.format, data, constant)
  }
  switch (data) {
    case 'digits':
    case 'digits:test':
      refuse(options, [...TEXT_ONLY, 'labels', 'format', 'dimension', 'classes', 'noise'], data)
      refuseScale(options, data)
      return openDigits(data === 'digits' ? 'train' : 'test', seed, constant, onRead)
    case 'synthetic':
      refuse(options, [...TEXT_ONLY, 'labels', 'format', 'classes'], data)
      refuseScale(options, data)
      checkNoise(options)
      return openSynthetic(options)
  }
  await checkSource(data)
  const format = options.format ?? guessFormat(data)
  switch (format) {
    case 'idx':
      refuse(options, [...TEXT_ONLY, 'noise'], format)
      refuseScale(options, format)
      return openIdx(data, options)
    case 'libsvm':
    case 'vw':
      refuse(options, ['labels', 'noise'], format)
      refuseScale(options, format)
      return openText(data, format, options)
    case 'csv':
    case 'jsonl':
      refuse(options, ['labels', 'noise'], format)
      return openText(data, format, options)
    default:
      format satisfies never
      throw new StreamOptionsError(`format ${format}: give one of ${FORMATS.join(', ')}`)
  }
}

function checkStreamOptions(options: StreamOptions): void {
  const { shard, passes, noise } = options
  if (shard !== undefined) {
    checkInteger('shard count', shard.count, 1, 1_000_000)
    checkInteger('shard index', shard.index, 0, shard.count - 1)
  }
  if (passes !== Number.POSITIVE_INFINITY) checkInteger('passes', passes, 1, Number.MAX_SAFE_INTEGER)
  checkInteger('shuffleWindow', options.shuffleWindow, 1, 1_000_000)
  checkInteger('seed', options.seed, Number.MIN_SAFE_INTEGER + 1, Number.MAX_SAFE_INTEGER)
  checkInteger('maxRows', options.maxRows, 0, Number.MAX_SAFE_INTEGER)
  if (noise !== undefined && !(noise >= 0 && noise < 1e6)) {
    throw new StreamOptionsError(`noise is ${noise}: give a number from 0`)
  }
}

function checkNoise({ target, noise, dimension }: StreamOptions): void {
  checkInteger('dimension', dimension, 1, 1_000_000)
  if (target !== 'number' && noise !== undefined && noise >= 0.5) {
    throw new StreamOptionsError(`noise is ${noise}: give the probability of a flipped class, below 0.5`)
  }
}

function refuse(options: StreamOptions, keys: readonly (keyof StreamOptions)[], input: string): void {
  const key = keys.find(name => options[name] !== undefined && options[name] !== false)
  if (key !== undefined) throw new StreamOptionsError(`${key} has no meaning for ${input}: leave it out`)
}

function refuseScale({ scale }: StreamOptions, input: string): void {
  if (scale === 'standard') {
    throw new StreamOptionsError(`scale standard needs numeric columns (csv, jsonl), ${input} has none: leave it out`)
  }
}

async function* compose(reader: Reader, options: StreamOptions, headway: ReadProgress): AsyncGenerator<Rows> {
  let rows = readPasses(reader, options, headway)
  if (options.scale === 'standard') {
    rows = standardise(rows, options.scaling ?? { moments: new RunningMoments(), frozen: false })
  }
  if (options.maxRows !== undefined) rows = takeRows(rows, options.maxRows)
  for await (const batch of rows) {
    options.signal?.throwIfAborted()
    headway.rows += batch.size
    yield batch
  }
}

async function* readPasses(reader: Reader, options: StreamOptions, headway: ReadProgress): AsyncGenerator<Rows> {
  const { shard, passes = 1, shuffleWindow, seed = 0 } = options
  const random = new Random(seed)
  for (let pass = 0; pass < passes; pass++) {
    headway.passes = pass
    if (headway.share !== undefined) headway.share = 0
    let rows = reader.pass()
    if (shard !== undefined) rows = takeShard(rows, shard)
    if (shuffleWindow !== undefined) rows = shuffle(rows, shuffleWindow, random)
    let isEmpty = true
    for await (const batch of rows) {
      isEmpty = false
      yield batch
    }
    // Endless passes over nothing would never let go.
    if (isEmpty) return
  }
}

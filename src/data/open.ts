/**
 * Opens any input as a stream of batches. Rows pass through shard, shuffle, limit and scaling, in this order, each only if the
 * options ask for it.
 */
import { basename } from 'node:path'
import { importance } from '../base/errors.js'
import { keepRows } from './cache.js'
import { StreamOptionsError, UnknownFormatError } from './errors.js'
import { openTokens } from './formats/builtins.js'
import { customInputOptions, isCustomFormat, openCustom } from './formats/custom.js'
import type { Reader } from './formats/format.js'
import {
  builtInStreams,
  formatNames,
  formats,
  guessFormat,
  isBuiltIn,
  isNamedAsData,
  isText,
  refuseOtherOptions
} from './formats/formats.js'
import { listed } from './formats/labels.js'
import { openText } from './formats/text.js'
import { checkInteger } from './options.js'
import { Preparation } from './prepare.js'
import { Random } from './random.js'
import type { PassPosition, Rows, StreamPosition } from './rows.js'
import { resolveScale } from './scale.js'
import { checkSource, sourceName } from './source.js'
import { logsOf, skippedIn } from './sources/files.js'
import { inputFiles } from './sources/segments.js'
import { isUrl } from './sources/url.js'
import { leaveOut, located, shuffle, skipRows, takeRows, takeShard } from './stages.js'
import type { StreamOptions } from './stream-options.js'
import type { ExampleStream } from './types.js'

/**
 * Opens a stream, which can be iterated once.
 * @example
 * const stream = await openStream({ data: 'mine.csv', label: 'bought', passes: 2 })
 * for await (const { size, labels } of stream) console.log(size, labels[0])
 * @throws StreamOptionsError, UnknownFormatError, MissingInputError, UnreadableInputError, IdxError, HeaderError; while
 * iterating also CorruptInputError, LineTooLongError and, under `strict`, MalformedInputError
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
  const { replayable: isReplayable = reader.repeatable } = reader
  let isIterated = false
  return {
    isReplayable,
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
    featuresPerRow: reader.featuresPerRow,
    interactions: reader.interactions,
    label: reader.label,
    classCounts: reader.classCounts,
    get scale() {
      return scaleOfRows(reader, options)
    },
    newClasses: reader.newClasses,
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
  const { data, tokens, onRead } = options
  if (tokens !== undefined) return openTokens(tokens, onRead)
  if (isCustomFormat(options.format)) {
    refuseOtherOptions(options.format, customInputOptions, options)
    return openCustom(options.format, data, options)
  }
  if (isBuiltIn(data)) {
    if (options.format !== undefined) throw new StreamOptionsError(`format has no meaning for ${data}: remove it`)
    const definition = builtInStreams[data]
    refuseOtherOptions(data, definition.options, options)
    return definition.open(options)
  }
  const files = data === '-' || isUrl(data) ? [data] : logsOf(await inputFiles(data))
  if (!isUrl(data)) await checkSource(files[0])
  await noticeSkipped(data, files, options)
  const format = options.format ?? guessFormat(files[0])
  const other = options.format === undefined ? files.find(file => guessFormat(file) !== format) : undefined
  if (other !== undefined) {
    throw new UnknownFormatError(`${files[0]} and ${other} have different formats: give format, or other files`)
  }
  if (!Object.hasOwn(formats, format)) {
    throw new StreamOptionsError(`unknown format '${format}'; expected one of ${formatNames.join(', ')}`)
  }
  refuseOtherOptions(format, formats[format].options, options)
  if (!isText(format) && (isUrl(data) || files.length > 1 || files[0] !== data)) {
    throw new StreamOptionsError(`${data} cannot be read as ${format}: give one file`)
  }
  return isText(format) ? keepRows(await openText(data, format, options), options) : formats[format].open(data, options)
}

/** @throws UnknownFormatError for a directory none of whose files is named as data */
async function noticeSkipped(
  data: string,
  files: readonly string[],
  { format, onNotice }: StreamOptions
): Promise<void> {
  if (data === '-' || isUrl(data)) return
  const skipped = await skippedIn(data)
  const named = (paths: readonly string[]) =>
    listed(
      paths.map(path => basename(path)),
      5
    )
  if (skipped.length > 0) {
    onNotice?.(
      `${data}: ${skipped.length} files are not named as data and are left out: ${named(skipped)}`,
      importance.leftOut
    )
  } else if (format === undefined && files[0] !== data && !files.some(isNamedAsData)) {
    throw new UnknownFormatError(
      `${data}: none of its files is named as data (${named(files)}): give a file, or format as one of ${formatNames.join(', ')}`
    )
  }
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
  if (typeof options.from === 'number') checkInteger('from', options.from, 0, Number.MAX_SAFE_INTEGER)
  if (options.follow && ((passes ?? 1) !== 1 || options.shuffleWindow !== undefined)) {
    throw new StreamOptionsError('follow reads one pass without an end: remove passes and shuffleWindow')
  }
  if (options.follow && (isBuiltIn(options.data) || isCustomFormat(options.format))) {
    throw new StreamOptionsError(`${options.data} is not a file: remove the option follow`)
  }
  if (noise !== undefined && !(noise >= 0 && noise < 1e6)) {
    throw new StreamOptionsError(`noise is ${noise}: give a number of at least 0`)
  }
}

/** Rows without columns are scaled by default if they are dense. */
function scaleOfRows({ schema, scale: own = 'none' }: Reader, { scale = 'none' }: StreamOptions): 'none' | 'standard' {
  return scale === 'auto' && schema === undefined ? own : resolveScale(scale, schema)
}

const START: StreamPosition = { rows: 0, pass: 0, row: 0, skip: 0 }

async function* compose(reader: Reader, options: StreamOptions, progress: ReadProgress): AsyncGenerator<Rows> {
  const start = await startOf(reader, options)
  let rows =
    typeof start === 'number' ? rowsAfter(start, reader, options, progress) : rowsFrom(start, reader, options, progress)
  if (options.maxRows !== undefined) {
    const before = typeof start === 'number' ? start : start.rows
    rows = takeRows(rows, Math.max(0, options.maxRows - before))
  }
  // Last, so that only rows that are learned are counted.
  const { constant = false, scaling } = options
  const { schema, hashBits } = reader
  const scale = scaleOfRows(reader, options)
  const preparation = Preparation.for({ schema, hashBits, constant, scale }, scaling)
  if (!options.scaleLater && preparation !== undefined) rows = preparation.rows(rows)
  const { replayable = reader.repeatable, forwardOnly } = reader
  for await (const batch of rows) {
    options.signal?.throwIfAborted()
    progress.rows += batch.size
    if (!replayable) yield { ...batch, positionAfter: undefined }
    else yield forwardOnly ? { ...batch, forwardOnly } : batch
  }
}

async function startOf(reader: Reader, options: StreamOptions): Promise<StreamPosition | number> {
  const { from = 'stored', resume, data } = options
  if (from === 'now' || typeof from === 'number') {
    if (reader.locate === undefined)
      throw new StreamOptionsError(`${data} has no position ${from}: remove the option from`)
    return { ...START, source: await reader.locate(from) }
  }
  const { replayable = reader.repeatable } = reader
  if (from === 'start' || resume === undefined || !replayable) return START
  if (typeof resume === 'number' || resume.source === undefined) return resume
  const verified = await reader.verify?.(resume.source)
  if (verified?.notice !== undefined) options.onNotice?.(verified.notice)
  if (verified === undefined || verified.isSame) return resume
  return { ...START, source: verified.source }
}

/** The rows after the first `count`, of a stream whose positions are not known. */
async function* rowsAfter(
  count: number,
  reader: Reader,
  options: StreamOptions,
  progress: ReadProgress
): AsyncGenerator<Rows> {
  const missing = yield* skipRows(rowsFrom(START, reader, options, progress), count)
  if (missing === 0 || count === missing) return
  const name = sourceName(options.data)
  options.onNotice?.(
    `${name} has ${count - missing} rows, but ${count} were read before: it was replaced, and is read from its beginning`
  )
  yield* rowsFrom(START, reader, options, progress)
}

async function* rowsFrom(
  start: StreamPosition,
  reader: Reader,
  options: StreamOptions,
  progress: ReadProgress
): AsyncGenerator<Rows> {
  const { shard, holdout, passes = 1, shuffleWindow, seed = 0 } = options
  const random = start.shuffled ? Random.restore(start.shuffled.random) : new Random(seed)
  let yielded = start.rows
  for (let pass = start.pass; pass < passes; pass++) {
    progress.passes = pass
    if (progress.share !== undefined) progress.share = 0
    const from: PassPosition = pass === start.pass ? start : START
    let rows = located(reader.pass(from.source), from, position => ({ ...position, pass, rows: yielded }))
    if (shard !== undefined) rows = takeShard(rows, shard, from.row + from.skip)
    if (holdout !== undefined) {
      const held = { index: holdout.every - 1, count: holdout.every }
      rows = holdout.part === 'learn' ? leaveOut(rows, held) : takeShard(rows, held)
    }
    if (shuffleWindow !== undefined) {
      rows = shuffled(rows, shuffleWindow, random, pass === start.pass ? (start.shuffled?.rows ?? 0) : 0)
    }
    let isEmpty = true
    for await (const batch of rows) {
      isEmpty = false
      const { positionAfter } = batch
      const before = yielded
      yield {
        ...batch,
        pass,
        positionAfter: positionAfter && (count => ({ ...positionAfter(count), rows: before + count }))
      }
      yielded = before + batch.size
    }
    // Infinitely many passes over an empty input would never return.
    if (isEmpty && from.row + from.skip === 0 && from.source === undefined) return
  }
}

/**
 * Shuffles a pass. Its positions name the start of the pass, from which the shuffle is repeated.
 * @param skip rows of the shuffled pass to skip
 */
async function* shuffled(
  input: AsyncIterable<Rows>,
  window: number,
  random: Random,
  skip: number
): AsyncGenerator<Rows> {
  const state = random.save()
  let first: StreamPosition | undefined
  async function* noting(): AsyncGenerator<Rows> {
    for await (const rows of input) {
      first ??= rows.positionAfter?.(0)
      yield rows
    }
  }
  let before = skip
  for await (const rows of skipRows(shuffle(noting(), window, random), skip)) {
    const start = before
    const position = { ...START, ...first }
    const positionAfter = (count: number) => ({ ...position, shuffled: { random: state, rows: start + count } })
    before += rows.size
    yield { ...rows, positionAfter }
  }
}

/** The share of a stream that has been consumed. */
class ReadProgress {
  /** Passes that are complete. */
  passes = 0
  /** Rows that have been yielded. */
  rows = 0
  /** Share of the current pass; undefined if the reader does not report it. */
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

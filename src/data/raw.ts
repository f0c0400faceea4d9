/** Rows of an input as text, to be passed on without being parsed: lines of a file, standard input or a URL, or LIBSVM lines of other inputs. */
import { HeaderError, StreamOptionsError } from './errors.js'
import { formats, guessFormat, isBuiltIn, isText, refuseUnsupported, type TextFormat } from './formats/formats.js'
import { LineFramer, locateLines, type RowFormat } from './formats/lines.js'
import { RecordLocator, RecordSplitter } from './formats/records.js'
import { openStream } from './open.js'
import { MAX_LINE_BYTES } from './options.js'
import { type Mark, RowBuffer, type Rows } from './rows.js'
import { delimiters, type SniffedDialect, sniffDialect } from './schema/dialect.js'
import { readHead } from './schema/sample.js'
import { sourceName } from './source.js'
import { openByteSource } from './sources/byte-source.js'
import { bytesAt, type FilePosition, isFilePosition, PositionTracker } from './sources/file-position.js'
import { inputFiles, type Piece } from './sources/segments.js'
import { isUrl } from './sources/url.js'
import type { StreamOptions } from './stream-options.js'
import type { Delimiter } from './types.js'

/** Maximum number of rows in a block. */
const BLOCK_ROWS = 256
/** The stream is endless. */
const SYNTHETIC_ROWS = 100_000
const NEWLINE = 0x0a
const SPACE = 0x20
const HASH = 0x23

/** Consecutive rows. */
export interface RawBlock {
  /** Each ends with its newline. */
  readonly lines: readonly Uint8Array[]
  /** Where it begins, as plain data; undefined if the input cannot be read again. */
  readonly place: RawPlace | undefined
}

export type RawPlace = ReturnType<Mark>

export interface RawInput {
  readonly format: TextFormat
  /** Delimiter of CSV; undefined for other formats. */
  readonly delimiter: Delimiter | undefined
  /** The line that precedes rows of CSV, as soon as a block has been read; undefined for other formats. */
  readonly header: Uint8Array | undefined
  /** Whether blocks have places. */
  readonly isReplayable: boolean
  /** Whether the input still is what it was when the place was taken. */
  isSame(place: RawPlace): Promise<boolean>
  /** The rows from a place on, or from the start. */
  blocks(from?: RawPlace): AsyncGenerator<RawBlock>
}

/** @throws errors of `openStream` */
export async function openRaw(options: StreamOptions): Promise<RawInput> {
  const { data } = options
  const files = data === '-' || isUrl(data) || isBuiltIn(data) ? [data] : await inputFiles(data)
  const format = isBuiltIn(data) ? data : (options.format ?? guessFormat(files[0]))
  if (isBuiltIn(data) || format === 'idx') return encoded(options)
  if (!Object.hasOwn(formats, format) || !isText(format as TextFormat)) {
    throw new StreamOptionsError(`the format ${format} cannot be passed on: give a file of text, or standard input`)
  }
  return openLines(options, format as TextFormat)
}

async function openLines(options: StreamOptions, format: TextFormat): Promise<RawInput> {
  const { data, columns } = options
  const source = await openByteSource(data, options)
  const { isReplayable } = source
  const isTable = format === 'csv' || format === 'parquet'
  let started: Piece | undefined
  let dialect: SniffedDialect | undefined
  if (isTable) {
    const first = await source.pieces(undefined, true)[Symbol.asyncIterator]().next()
    const piece = first.value as Piece
    const head = await readHead(isReplayable ? piece.readAt(0) : piece.read(), !isReplayable)
    if (isReplayable) await head.close()
    else started = { ...piece, read: () => head.chunks }
    refuseUnsupported(head.bytes, sourceName(data))
    dialect = sniffDialect(head.bytes, options, sourceName(data))
  }
  const cutter = new LineCutter(format, dialect, columns)
  const framer = new LineFramer(cutter, sourceName(data), MAX_LINE_BYTES)
  const unused = new RowBuffer()
  async function* blocksOf(piece: Piece, skip: number): AsyncGenerator<RawBlock> {
    const { start } = piece
    framer.restart()
    if (start.offset > 0 && start.head !== undefined && dialect?.header) {
      framer.push(await bytesAt(piece.readAt, 0, start.head.length), unused)
      cutter.take()
    }
    cutter.line = start.line
    const tracker = new PositionTracker(framer, start)
    piece.position = () => tracker.position
    let left = skip
    const cut = (mark: Mark) => {
      const lines = cutter.take()
      const from = Math.min(left, lines.length)
      left -= from
      return { size: lines.length, blocks: inBlocks(lines, from, isReplayable ? mark : undefined) }
    }
    for await (const chunk of piece.read()) {
      const { mark } = tracker
      framer.push(chunk, unused)
      const { size, blocks } = cut(mark)
      tracker.pushed(chunk, size)
      yield* blocks
    }
    if (piece.isCut) return
    const { mark } = tracker
    framer.end(unused)
    tracker.ended()
    yield* cut(mark).blocks
  }
  return {
    format: isTable ? 'csv' : format,
    delimiter: dialect?.delimiter,
    get header() {
      return cutter.header
    },
    isReplayable,
    isSame: async place => isFilePosition(place.source) && (await source.resume(place.source)).isSame,
    async *blocks(from) {
      let skip = from?.skip ?? 0
      const pieces = started === undefined ? source.pieces(from?.source as FilePosition | undefined) : [started]
      started = undefined
      for await (const piece of pieces) {
        yield* blocksOf(piece, skip)
        skip = 0
      }
    }
  }
}

function* inBlocks(lines: readonly Uint8Array[], first: number, mark: Mark | undefined): Generator<RawBlock> {
  for (let from = first; from < lines.length; from += BLOCK_ROWS) {
    yield { lines: lines.slice(from, from + BLOCK_ROWS), place: mark?.(from) }
  }
}

/** Divides text into rows. */
class LineCutter implements RowFormat {
  line = 0
  header: Uint8Array | undefined
  readonly #comment: number | undefined
  readonly #dialect: SniffedDialect | undefined
  readonly #columns: readonly string[] | undefined
  readonly #locator: RecordLocator | undefined
  readonly #splitter: RecordSplitter | undefined
  #isHeaderNext = false
  #lines: Uint8Array[] = []

  /** @param format whose comments are no rows @param dialect of CSV @param columns the names of columns without a header */
  constructor(format: TextFormat, dialect: SniffedDialect | undefined, columns: readonly string[] | undefined) {
    this.#comment = format === 'libsvm' ? HASH : undefined
    this.#dialect = dialect
    this.#columns = columns
    this.#locator = dialect && new RecordLocator(delimiters[dialect.delimiter])
    this.#splitter = dialect && new RecordSplitter(delimiters[dialect.delimiter])
  }

  restart(): void {
    this.line = 0
    this.#locator?.restart()
    this.#isHeaderNext = this.#dialect?.header ?? false
  }

  locate(chunk: Uint8Array): { first: number; last: number } {
    return this.#locator?.locate(chunk) ?? locateLines(chunk)
  }

  parse(input: Uint8Array, from: number, to: number): void {
    // The bytes belong to the reader.
    const bytes = input.slice(from, to)
    for (let start = 0, end = 0; start < bytes.length; start = end) {
      end = this.#splitter?.split(bytes, start) ?? bytes.indexOf(NEWLINE, start) + 1
      this.line += this.#splitter?.lines ?? 1
      const line = bytes.subarray(start, end)
      const first = line.find(byte => byte > SPACE)
      if (first === undefined || first === this.#comment) continue
      if (this.#isHeaderNext) {
        this.#isHeaderNext = false
        if (this.header !== undefined && Buffer.compare(this.header, line) !== 0)
          throw new HeaderError('the header of a file differs from the one before: give rows of one table only')
        this.header = line
        continue
      }
      if (this.#splitter !== undefined) this.header ??= this.#named(this.#splitter.count)
      this.#lines.push(line)
    }
  }

  /** The rows since the last call. */
  take(): readonly Uint8Array[] {
    const lines = this.#lines
    this.#lines = []
    return lines
  }

  /** A header for rows without one. */
  #named(count: number): Uint8Array {
    const names = Array.from({ length: count }, (_, i) => this.#columns?.[i] ?? String(i + 1))
    const quoted = names.map(name => `"${name.replaceAll('"', '""')}"`)
    return Buffer.from(`${quoted.join(this.#dialect?.delimiter)}\n`)
  }
}

/** Rows of an input that is not text. */
function encoded(options: StreamOptions): RawInput {
  return {
    format: 'libsvm',
    delimiter: undefined,
    header: undefined,
    isReplayable: options.data !== '-',
    isSame: async () => true,
    async *blocks(from) {
      const { skip = 0 } = from ?? {}
      let before = 0
      const stream = await openStream({
        ...options,
        maxRows: options.data === 'synthetic' ? SYNTHETIC_ROWS : undefined
      })
      for await (const rows of stream) {
        const start = before
        before += rows.size
        if (before <= skip) continue
        const lines = Array.from({ length: rows.size }, (_, row) => lineOf(rows, row))
        yield* inBlocks(lines, Math.max(0, skip - start), count => ({ source: undefined, skip: start + count }))
      }
    }
  }
}

function lineOf({ labels, offsets, indices, values, weights }: Rows, row: number): Uint8Array {
  if (weights !== undefined) throw new StreamOptionsError('rows with weights cannot be passed on: give a file of text')
  let line = `${labels[row]}`
  for (let i = offsets[row]; i < offsets[row + 1]; i++) line += ` ${indices[i] + 1}:${values[i]}`
  return Buffer.from(`${line}\n`)
}

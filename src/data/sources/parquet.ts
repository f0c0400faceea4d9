/**
 * Converts Parquet to the CSV of the same table, so it is read and resumed like any compressed CSV: nulls are empty, times are ISO
 * 8601, numbers are decimal. One row group is in memory at a time, as one typed array per column.
 */
import { type FileHandle, open } from 'node:fs/promises'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { decompress } from 'fzstd'
import { importance, type OnNotice } from '../../base/errors.js'
import { CorruptInputError, HeaderError } from '../errors.js'

type Options = Parameters<typeof import('hyparquet').parquetScan>[0]
type File = Options['file']
type Value = string | number | bigint | boolean | Date | Uint8Array | object | null | undefined

/** Rows that are rendered at a time. */
const CHUNK_ROWS = 1000

export interface ParquetOptions {
  readonly signal?: AbortSignal
  readonly onRead?: (share: number) => void
  readonly onNotice?: OnNotice
}

/** By name of the codec; the library decompresses Snappy itself. */
const compressors: NonNullable<Options['compressors']> = {
  GZIP: input => gunzipSync(input),
  BROTLI: input => brotliDecompressSync(input),
  ZSTD: (input, length) => decompress(input, new Uint8Array(length))
}

/** Streams that have reported nested columns, which each pass and each file would report again. */
const told = new WeakSet<ParquetOptions>()

const decoder = new TextDecoder()
const encoder = new TextEncoder()
const parsers: Options['parsers'] = { jsonFromBytes: bytes => decoder.decode(bytes) }

/** @throws CorruptInputError, HeaderError */
export async function* parquetFileAsCsv(
  path: string,
  name: string,
  options: ParquetOptions
): AsyncGenerator<Uint8Array> {
  const handle = await open(path, 'r')
  try {
    yield* tableAsCsv(await onDisk(handle), name, options)
  } finally {
    await handle.close()
  }
}

/** The same for content that cannot be read at random, which is collected. @throws CorruptInputError, HeaderError */
export async function* parquetAsCsv(
  content: AsyncGenerator<Uint8Array>,
  name: string,
  options: ParquetOptions
): AsyncGenerator<Uint8Array> {
  const parts: Uint8Array[] = []
  for await (const block of content) parts.push(block.slice())
  const bytes = Uint8Array.from(Buffer.concat(parts))
  const file: File = { byteLength: bytes.length, slice: (from, to) => bytes.slice(from, to).buffer }
  yield* tableAsCsv(file, name, options)
}

async function* tableAsCsv(file: File, name: string, options: ParquetOptions): AsyncGenerator<Uint8Array> {
  const { parquetScan, parquetSchema } = await import('hyparquet')
  const scan = await orDamaged(name, parquetScan({ file, compressors, parsers, geoparquet: false }))
  const { metadata } = scan
  const { children } = parquetSchema(metadata)
  const isNested = (column: (typeof children)[number]) =>
    column.children.length > 0 || column.element.repetition_type === 'REPEATED'
  const columns = children.filter(column => !isNested(column)).map(({ element }) => element.name)
  const nested = children.filter(isNested).map(({ element }) => `"${element.name}"`)
  if (columns.length === 0) throw new HeaderError(`${name}: every column is nested: flatten the table`)
  if (nested.length > 0 && !told.has(options)) {
    told.add(options)
    options.onNotice?.(`${name}: nested columns are ignored: ${nested.join(', ')}`, importance.leftOut)
  }
  yield Buffer.from(`${columns.map(quoted).join(',')}\n`)
  const writer = new CsvWriter()
  for (const range of scan.ranges) {
    const rows = range.rowEnd - range.rowStart
    const values: ArrayLike<Value>[] = []
    for (const column of columns) {
      options.signal?.throwIfAborted()
      values.push(await orDamaged(name, scan.readColumn({ column, ...range })))
    }
    if (values.some(({ length }) => length !== rows)) throw damaged(name)
    for (let row = 0; row < rows; row += CHUNK_ROWS) yield writer.rows(values, row, Math.min(rows, row + CHUNK_ROWS))
    options.onRead?.(range.rowEnd / Number(metadata.num_rows))
  }
}

/** Texts up to this length whose bytes are kept, because categories recur. */
const KEPT_TEXTS = 4096
const KEPT_LENGTH = 64
/** Bytes of the longest number. */
const NUMBER_BYTES = 32
/** Numbers with up to six digits after the point, whose digits are an integer of 32 bits, are written without a string. */
const MAX_SCALE = 1e6
const MAX_DIGITS = 2 ** 31 - 1
const POWERS = Array.from({ length: 10 }, (_, exponent) => 10 ** exponent)
const [COMMA, MINUS, NEWLINE, POINT, ZERO] = [...',-\n.0'].map(char => char.charCodeAt(0))

/** Writes rows of CSV as bytes, because strings of numbers take longer to make than the columns. */
class CsvWriter {
  #bytes = new Uint8Array(1 << 16)
  #length = 0
  readonly #kept = new Map<string, Uint8Array>()

  rows(values: readonly ArrayLike<Value>[], from: number, to: number): Uint8Array {
    this.#length = 0
    const last = values.length - 1
    for (let row = from; row < to; row++) {
      for (let i = 0; i <= last; i++) {
        const value = values[i][row]
        // An empty line would not count as a row.
        if (last === 0) this.#text(`"${cell(value).replaceAll('"', '""')}"`)
        else if (typeof value === 'number') this.#number(value)
        else if (value !== null && value !== undefined) this.#keptText(cell(value))
        this.#reserve(1)
        this.#bytes[this.#length++] = i === last ? NEWLINE : COMMA
      }
    }
    return this.#bytes.slice(0, this.#length)
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes <= this.#bytes.length) return
    const larger = new Uint8Array(2 * (this.#length + bytes))
    larger.set(this.#bytes.subarray(0, this.#length))
    this.#bytes = larger
  }

  #text(text: string): void {
    this.#reserve(3 * text.length)
    this.#length += encoder.encodeInto(text, this.#bytes.subarray(this.#length)).written
  }

  #keptText(text: string): void {
    if (text.length > KEPT_LENGTH) {
      this.#text(quoted(text))
      return
    }
    let bytes = this.#kept.get(text)
    if (bytes === undefined) {
      if (this.#kept.size === KEPT_TEXTS) this.#kept.clear()
      bytes = encoder.encode(quoted(text))
      this.#kept.set(text, bytes)
    }
    this.#reserve(bytes.length)
    this.#bytes.set(bytes, this.#length)
    this.#length += bytes.length
  }

  /** Writes what `String` gives. */
  #number(value: number): void {
    const size = Math.abs(value)
    // Most other numbers have more digits than are found here.
    if (size < MAX_DIGITS && Math.round(size * MAX_SCALE) / MAX_SCALE === size) {
      let [scale, fraction] = [1, 0]
      for (; scale < MAX_SCALE && Math.round(size * scale) / scale !== size; scale *= 10) fraction++
      const digits = Math.round(size * scale)
      if (digits <= MAX_DIGITS) {
        this.#decimal(digits | 0, fraction, value < 0)
        return
      }
    }
    const text = String(value)
    this.#reserve(NUMBER_BYTES)
    for (let i = 0; i < text.length; i++) this.#bytes[this.#length++] = text.charCodeAt(i)
  }

  /** Writes digits with the point before the last `fraction` ones. */
  #decimal(digits: number, fraction: number, isNegative: boolean): void {
    this.#reserve(NUMBER_BYTES)
    const bytes = this.#bytes
    if (isNegative) bytes[this.#length++] = MINUS
    let count = fraction + 1
    while (count < POWERS.length && digits >= POWERS[count]) count++
    this.#length += count + Number(fraction > 0)
    let at = this.#length
    let rest = digits
    for (let place = 0; place < count; place++) {
      if (place === fraction && place > 0) bytes[--at] = POINT
      const next = (rest / 10) | 0
      bytes[--at] = ZERO + rest - 10 * next
      rest = next
    }
  }
}

function cell(value: Value): string {
  if (value === null || value === undefined) return ''
  if (typeof value !== 'object') return String(value)
  if (value instanceof Date) return value.toISOString()
  return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : JSON.stringify(value)
}

function quoted(text: string): string {
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

async function orDamaged<T>(name: string, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (cause) {
    const codec = /unsupported compression codec: (\w+)/.exec((cause as Error).message)?.[1]
    if (codec === undefined) throw damaged(name, cause)
    throw new CorruptInputError(
      `${name}: its Parquet columns are compressed by ${codec}, which is not read: write it with Zstandard, gzip, Snappy or Brotli`,
      { cause }
    )
  }
}

function damaged(name: string, cause?: unknown): CorruptInputError {
  const reason = cause instanceof Error ? ` (${cause.message.split('\n')[0]})` : ''
  return new CorruptInputError(`${name}: the Parquet file is damaged or incomplete${reason}: download it again`, {
    cause
  })
}

async function onDisk(handle: FileHandle): Promise<File> {
  const { size } = await handle.stat()
  return {
    byteLength: size,
    async slice(from, to = size) {
      const bytes = new Uint8Array(to - from)
      const { bytesRead } = await handle.read(bytes, 0, bytes.length, from)
      return bytes.buffer.slice(0, bytesRead)
    }
  }
}

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
  for (const range of scan.ranges) {
    const rows = range.rowEnd - range.rowStart
    const values: ArrayLike<Value>[] = []
    for (const column of columns) {
      options.signal?.throwIfAborted()
      values.push(await orDamaged(name, scan.readColumn({ column, ...range })))
    }
    if (values.some(({ length }) => length !== rows)) throw damaged(name)
    for (let row = 0; row < rows; row += CHUNK_ROWS) yield rendered(values, row, Math.min(rows, row + CHUNK_ROWS))
    options.onRead?.(range.rowEnd / Number(metadata.num_rows))
  }
}

function rendered(values: readonly ArrayLike<Value>[], from: number, to: number): Uint8Array {
  let text = ''
  for (let row = from; row < to; row++) {
    // An empty line would not count as a row.
    if (values.length === 1) text += `"${cell(values[0][row]).replaceAll('"', '""')}"`
    else for (let i = 0; i < values.length; i++) text += `${i === 0 ? '' : ','}${quoted(cell(values[i][row]))}`
    text += '\n'
  }
  return Buffer.from(text)
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

/**
 * Positions in files. A file is identified by its content: the rows at its beginning, and the bytes before the position. So a file
 * that was renamed, copied or appended to stays the same, and one that was replaced is another, whatever their names and inodes.
 */
import { createHash } from 'node:crypto'
import { StreamOptionsError } from '../errors.js'
import type { Parser } from '../formats/parser.js'
import type { Mark } from '../rows.js'

/** Number of bytes before a position that identify it. */
const TAIL_BYTES = 256
/** The bytes at the beginning identify a file even if they hold no rows. */
const LONGEST_HEAD = 65_536

/** A digest of that many bytes. */
interface Fingerprint {
  readonly length: number
  readonly digest: string
}

/** A row's start in a text file. */
export interface FilePosition {
  readonly path: string
  /** In bytes, after decompression. */
  readonly offset: number
  /** Number of lines before. */
  readonly line: number
  /** The first rows, with the header. */
  readonly head?: Fingerprint
  /** The bytes before `offset`. */
  readonly tail?: Fingerprint
}

function fingerprint(bytes: Uint8Array): Fingerprint {
  return { length: bytes.length, digest: createHash('sha256').update(bytes).digest('hex').slice(0, 32) }
}

/** Whether a stored value is a position of this form. */
export function isFilePosition(value: unknown): value is FilePosition {
  const { path, offset, line } = (value ?? {}) as Partial<FilePosition>
  return typeof path === 'string' && Number.isSafeInteger(offset) && Number.isSafeInteger(line)
}

/** Where a file can be read from. */
export type ReadAt = (offset: number) => AsyncGenerator<Uint8Array>

/** Whether the content is that of the file in which the position was taken. */
export async function holds(read: ReadAt, { offset, head, tail }: FilePosition): Promise<boolean> {
  const has = async (from: number, expected: Fingerprint | undefined) =>
    expected === undefined || fingerprint(await bytesAt(read, from, expected.length)).digest === expected.digest
  return (await has(0, head)) && (await has(offset - (tail?.length ?? 0), tail))
}

/** @returns `length` bytes, or fewer at the end */
export async function bytesAt(read: ReadAt, from: number, length: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = []
  let missing = length
  if (missing > 0) {
    for await (const chunk of read(from)) {
      parts.push(chunk.slice(0, missing))
      missing -= Math.min(missing, chunk.length)
      if (missing === 0) break
    }
  }
  return Buffer.concat(parts)
}

/** Follows a parser through a file, and knows the position of the rows of each chunk. */
export class PositionTracker {
  readonly #path: string
  readonly #parser: Pick<Parser, 'held' | 'line'>
  #head: Fingerprint | undefined
  /** Bytes of the first rows, until they are complete. */
  #beginning: Uint8Array[] | undefined
  /** Bytes that the parser has received, and those of complete rows. */
  #end: number
  #boundary: number
  #line: number
  #tail: Uint8Array | undefined

  /** @param start the position of the first byte that the parser receives */
  constructor(parser: Pick<Parser, 'held' | 'line'>, start: FilePosition) {
    this.#parser = parser
    this.#path = start.path
    this.#head = start.head
    this.#end = start.offset
    this.#boundary = start.offset
    this.#line = start.line
    if (start.head === undefined && start.offset === 0) this.#beginning = []
  }

  /** The rows that the parser returns next begin here. */
  get position(): FilePosition {
    return this.#at(this.#boundary, this.#line, this.#tail)
  }

  /** The mark of the rows that the parser returns next. */
  get mark(): Mark {
    const [offset, line, tail] = [this.#boundary, this.#line, this.#tail]
    return count => ({ source: this.#at(offset, line, tail), skip: count })
  }

  /** Notes that the parser has received a chunk and returned that many rows. */
  pushed(chunk: Uint8Array, rows: number): void {
    const { held, line } = this.#parser
    this.#end += chunk.length
    this.#beginning?.push(chunk.slice())
    const complete = chunk.length - held
    if (complete <= 0) return
    if (rows > 0 || this.#end > LONGEST_HEAD) this.#finishHead(held)
    this.#tail = chunk.slice(Math.max(0, complete - TAIL_BYTES), complete)
    this.#line = line
    this.#boundary = this.#end - held
  }

  /** Notes that the file has ended. Its last row may lack a newline. */
  ended(): void {
    this.#finishHead(0)
  }

  #finishHead(held: number): void {
    if (this.#beginning === undefined) return
    const bytes = Buffer.concat(this.#beginning)
    this.#head = fingerprint(bytes.subarray(0, bytes.length - held))
    this.#beginning = undefined
  }

  #at(offset: number, line: number, tail: Uint8Array | undefined): FilePosition {
    return { path: this.#path, offset, line, head: this.#head, tail: tail && fingerprint(tail) }
  }
}

/** Where rows begin in content that can be read from any offset. */
const NEWLINE = 0x0a
/** Bytes of a step backwards, in search of the last newline. */
const STEP_BYTES = 65_536

/**
 * The start of the first row at or after an offset; with `now`, the start of an incomplete last row, or the end.
 * @param name in messages
 * @throws StreamOptionsError for an offset behind the end
 */
export async function rowStart(name: string, size: number, readAt: ReadAt, from: 'now' | number): Promise<number> {
  if (from === 'now') return lastRowStart(size, readAt)
  if (from > size) throw new StreamOptionsError(`${name} has ${size} bytes, fewer than the offset ${from}`)
  if (from === 0) return 0
  let offset = from - 1
  for await (const chunk of readAt(offset)) {
    const newline = chunk.indexOf(NEWLINE)
    if (newline >= 0) return offset + newline + 1
    offset += chunk.length
  }
  return size
}

async function lastRowStart(size: number, readAt: ReadAt): Promise<number> {
  for (let end = size; end > 0; end -= STEP_BYTES) {
    const from = Math.max(0, end - STEP_BYTES)
    const newline = (await bytesAt(readAt, from, end - from)).lastIndexOf(NEWLINE)
    if (newline >= 0) return from + newline + 1
  }
  return 0
}

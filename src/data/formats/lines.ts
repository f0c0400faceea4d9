/**
 * Divides arbitrary chunks of bytes into complete rows. An incomplete row at the end of a chunk is carried over to the next
 * chunk, so a format's parser receives only whole rows that end in a newline, and need not check for the end of the bytes.
 */
import { LineTooLongError } from '../errors.js'
import type { RowBuffer } from '../rows.js'

const NEWLINE = 0x0a

/** The parser of a format's rows, which also locates where rows end. */
export interface RowFormat {
  /** Number of lines that have been parsed. */
  line: number
  /** Appends the rows in `bytes[from, to)`, which ends with a row's newline, to `out`, which has enough capacity. */
  parse(bytes: Uint8Array, from: number, to: number, out: RowBuffer): void
  /** Finds the positions after the first and the last complete row (0 for none) in the next chunk. */
  locate(chunk: Uint8Array): { first: number; last: number }
  /** Called before the first byte of a file. */
  restart(): void
}

/** `locate` of formats in which every newline ends a row. */
export function locateLines(chunk: Uint8Array): { first: number; last: number } {
  return { first: chunk.indexOf(NEWLINE) + 1, last: chunk.lastIndexOf(NEWLINE) + 1 }
}

export class LineFramer {
  readonly #format: RowFormat
  readonly #source: string
  readonly #limit: number
  #carry = new Uint8Array(4096)
  #held = 0
  #first = true

  /** @param limit maximum length of a row, in bytes */
  constructor(format: RowFormat, source: string, limit: number) {
    this.#format = format
    this.#source = source
    this.#limit = limit
  }

  /** Bytes of an incomplete last row. */
  get held(): number {
    return this.#held
  }

  /** Number of lines that have been parsed. */
  get line(): number {
    return this.#format.line
  }

  /** @throws LineTooLongError */
  push(input: Uint8Array, out: RowBuffer): void {
    const chunk = this.#first ? this.#withoutMark(input) : input
    if (chunk.length === 0) return
    const { first, last } = this.#format.locate(chunk)
    if (last === 0) {
      this.#hold(chunk)
      return
    }
    let from = 0
    if (this.#held > 0) {
      this.#hold(chunk.subarray(0, first))
      this.#parse(this.#carry, 0, this.#held, out)
      this.#held = 0
      from = first
    }
    if (last > from) this.#parse(chunk, from, last, out)
    if (last < chunk.length) this.#hold(chunk.subarray(last))
  }

  /** Parses a last row without a newline. */
  end(out: RowBuffer): void {
    this.#first = false
    if (this.#held > 0) {
      this.#hold(Uint8Array.of(NEWLINE))
      this.#parse(this.#carry, 0, this.#held, out)
    }
    this.#held = 0
  }

  restart(): void {
    this.#held = 0
    this.#first = true
    this.#format.restart()
  }

  /** Skips a UTF-8 byte order mark, which may be divided between chunks. */
  #withoutMark(input: Uint8Array): Uint8Array {
    let chunk = input
    if (this.#held > 0) {
      chunk = new Uint8Array(this.#held + input.length)
      chunk.set(this.#carry.subarray(0, this.#held))
      chunk.set(input, this.#held)
      this.#held = 0
    }
    const mark = [0xef, 0xbb, 0xbf]
    const length = Math.min(3, chunk.length)
    const marked = mark.slice(0, length).every((byte, i) => chunk[i] === byte)
    if (marked && length < 3) {
      this.#hold(chunk)
      return chunk.subarray(0, 0)
    }
    this.#first = false
    return marked ? chunk.subarray(3) : chunk
  }

  #parse(bytes: Uint8Array, from: number, to: number, out: RowBuffer): void {
    // A row, and an entry, has at least two bytes including its terminator. The constant feature is one more entry.
    const rows = (to - from) >> 1
    out.reserve(rows + 1, to - from + 2)
    this.#format.parse(bytes, from, to, out)
  }

  #hold(bytes: Uint8Array): void {
    const length = this.#held + bytes.length
    if (length > this.#limit) {
      throw new LineTooLongError(
        `${this.#source}: a line is longer than ${this.#limit} bytes: check that the file has the given format`
      )
    }
    if (length > this.#carry.length) {
      const carry = new Uint8Array(Math.max(length, 2 * this.#carry.length))
      carry.set(this.#carry.subarray(0, this.#held))
      this.#carry = carry
    }
    this.#carry.set(bytes, this.#held)
    this.#held = length
  }
}

/**
 * Complete rows out of arbitrary chunks of bytes. What a chunk's end cuts off is carried over to the next chunk, so a
 * format's parser only ever sees whole rows that end in a newline, and may read ahead without looking for the end.
 */
import { LineTooLongError } from './errors.js'
import type { RowBuffer } from './rows.js'

const NEWLINE = 0x0a

/** A text format: parses rows and knows where one may end. */
export interface RowFormat {
  /** Appends the rows in `bytes[from, to)`, which ends with a row's newline, to `out`, where room has been made. */
  parse(bytes: Uint8Array, from: number, to: number, out: RowBuffer): void
  /** Finds the first and the last place behind a complete row (0: none) in a chunk that follows the chunks before. */
  locate(chunk: Uint8Array): { first: number; last: number }
  /** The next byte is the first of a file again. */
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

  /** @param limit bytes that one row may hold */
  constructor(format: RowFormat, source: string, limit: number) {
    this.#format = format
    this.#source = source
    this.#limit = limit
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

  /** Parses a last row that no newline ended, and starts afresh. */
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

  /** Skips a UTF-8 byte order mark, which may itself come in pieces. */
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
    // No format has a row, or an entry, of fewer than two bytes with what ends it; one more entry is the constant.
    const rows = (to - from) >> 1
    out.reserve(rows + 1, to - from + 2)
    this.#format.parse(bytes, from, to, out)
  }

  #hold(bytes: Uint8Array): void {
    const length = this.#held + bytes.length
    if (length > this.#limit) {
      throw new LineTooLongError(
        `${this.#source}: a line is longer than ${this.#limit} bytes: check that the format is the file's own`
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

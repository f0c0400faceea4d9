/**
 * RFC 4180 records: fields separated by a comma or another byte, and quoted if they contain it, quotes or newlines. Splits whole records into
 * fields, and locates the ends of records in a chunk that may start inside a quoted field.
 */

const NEWLINE = 0x0a
const RETURN = 0x0d
const COMMA = 0x2c
const SPACE = 0x20
const TAB = 0x09
const QUOTE = 0x22

type State = 'start' | 'plain' | 'quoted' | 'closing'

/** Tracks quotes across chunks. A quote opens a field only at its start, so that a stray quote inside a field is harmless. */
export class RecordLocator {
  readonly #delimiter: number
  #state: State = 'start'

  constructor(delimiter = COMMA) {
    this.#delimiter = delimiter
  }

  restart(): void {
    this.#state = 'start'
  }

  /** @returns the positions after the first and the last complete record, 0 for none */
  locate(chunk: Uint8Array): { first: number; last: number } {
    let first = 0
    let last = 0
    let state = this.#state
    let from = 0
    const delimiter = this.#delimiter
    if ((state === 'start' || state === 'plain') && !chunk.includes(QUOTE)) {
      // Without quotes, every newline ends a record. Only the bytes after the last one determine the state.
      first = chunk.indexOf(NEWLINE) + 1
      last = chunk.lastIndexOf(NEWLINE) + 1
      if (last > 0) state = 'start'
      from = last
    }
    for (let i = from; i < chunk.length; i++) {
      if (state === 'quoted') {
        const quote = chunk.indexOf(QUOTE, i)
        if (quote < 0) break
        i = quote
        state = 'closing'
        continue
      }
      const byte = chunk[i]
      if (byte === NEWLINE) {
        last = i + 1
        if (first === 0) first = last
        state = 'start'
      } else if (byte === delimiter) {
        state = 'start'
      } else if (byte === QUOTE && state !== 'plain') {
        state = 'quoted'
      } else if (state === 'start') {
        // Spaces before a quote are trimmed.
        if (byte !== SPACE && byte !== TAB) state = 'plain'
      } else if (state === 'closing') {
        state = 'plain'
      }
    }
    this.#state = state
    return { first, last }
  }
}

/**
 * Splits one record after another. White space around a field is dropped, and kept inside quotes. Field f is
 * `text[f][from[f], to[f])`.
 */
export class RecordSplitter {
  readonly text: Uint8Array[] = []
  readonly from: number[] = []
  readonly to: number[] = []
  /** Number of fields in the last record. */
  count = 0
  /** Number of newlines in the last record, including the one at its end. */
  lines = 0
  /** Why the last record is malformed (empty if it is not), and where. */
  fault = ''
  at = 0
  /** Whether the last record ends with the input, in a quoted field. */
  isUnclosed = false
  readonly #delimiter: number
  /** A second byte of white space, which is not the delimiter. */
  readonly #tab: number

  constructor(delimiter = COMMA) {
    this.#delimiter = delimiter
    this.#tab = delimiter === TAB ? SPACE : TAB
  }

  /** Splits the record at `start`. @returns the position after its newline, also if it is malformed */
  split(bytes: Uint8Array, start: number): number {
    this.count = 0
    this.lines = 1
    this.fault = ''
    this.isUnclosed = false
    let position = start
    const tab = this.#tab
    for (;;) {
      while (bytes[position] === SPACE || bytes[position] === tab) position++
      position = bytes[position] === QUOTE ? this.#quoted(bytes, position) : this.#plain(bytes, position)
      const byte = bytes[position++]
      if (byte === NEWLINE) return position
    }
  }

  /** @returns the position of the delimiter or newline after the field */
  #plain(bytes: Uint8Array, from: number): number {
    let position = from
    const delimiter = this.#delimiter
    const tab = this.#tab
    while (bytes[position] !== delimiter && bytes[position] !== NEWLINE) position++
    let to = position
    while (to > from && (bytes[to - 1] === SPACE || bytes[to - 1] === tab || bytes[to - 1] === RETURN)) to--
    this.#add(bytes, from, to)
    return position
  }

  #quoted(bytes: Uint8Array, open: number): number {
    let close = bytes.indexOf(QUOTE, open + 1)
    let escapes = 0
    // Two quotes escape one. The record is complete, or ends with the input.
    while (close >= 0 && bytes[close + 1] === QUOTE) {
      escapes++
      close = bytes.indexOf(QUOTE, close + 2)
    }
    if (close < 0) {
      this.#fail(open, 'a quoted field is not closed')
      this.isUnclosed = true
      for (let i = open; i < bytes.length - 1; i++) if (bytes[i] === NEWLINE) this.lines++
      return bytes.lastIndexOf(NEWLINE)
    }
    for (let i = open; i < close; i++) if (bytes[i] === NEWLINE) this.lines++
    if (escapes === 0) this.#add(bytes, open + 1, close)
    else this.#addUnescaped(bytes, open + 1, close)
    let position = close + 1
    const delimiter = this.#delimiter
    const tab = this.#tab
    while (bytes[position] === SPACE || bytes[position] === tab || bytes[position] === RETURN) position++
    if (bytes[position] === delimiter || bytes[position] === NEWLINE) return position
    const name = delimiter === COMMA ? 'a comma' : delimiter === TAB ? 'a tab' : `"${String.fromCharCode(delimiter)}"`
    this.#fail(position, `expected ${name} after the closing quote`)
    while (bytes[position] !== delimiter && bytes[position] !== NEWLINE) position++
    return position
  }

  #addUnescaped(bytes: Uint8Array, from: number, to: number): void {
    const text = new Uint8Array(to - from + 1)
    let length = 0
    for (let i = from; i < to; i++) {
      text[length++] = bytes[i]
      if (bytes[i] === QUOTE) i++
    }
    this.#add(text, 0, length)
  }

  #add(text: Uint8Array, from: number, to: number): void {
    this.text[this.count] = text
    this.from[this.count] = from
    this.to[this.count++] = to
  }

  #fail(at: number, reason: string): void {
    if (this.fault !== '') return
    this.fault = reason
    this.at = at
  }
}

/** A record with its fields as texts. */
interface TextRecord {
  readonly fields: readonly string[]
  /** 1-based line of its start. */
  readonly line: number
  /** Why it is malformed, empty if it is not. */
  readonly fault: string
}

/** Reads the records of a whole text one after another; blank lines are left out. */
export class RecordReader {
  readonly #bytes: Uint8Array
  readonly #splitter: RecordSplitter
  #at = 0
  #line = 1

  /** @param bytes end in a newline */
  constructor(bytes: Uint8Array, delimiter: number) {
    this.#bytes = bytes
    this.#splitter = new RecordSplitter(delimiter)
  }

  next(): TextRecord | undefined {
    while (this.#at < this.#bytes.length) {
      this.#at = this.#splitter.split(this.#bytes, this.#at)
      const { text, from, to, count, lines, fault } = this.#splitter
      const line = this.#line
      this.#line += lines
      if (count === 1 && fault === '' && from[0] === to[0]) continue
      const fields = Array.from({ length: count }, (_, i) =>
        Buffer.from(text[i].subarray(from[i], to[i])).toString('utf8')
      )
      return { fields, line, fault }
    }
    return undefined
  }
}

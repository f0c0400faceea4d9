/**
 * RFC 4180 records: fields between commas, quoted where they hold commas, quotes or newlines. Splits the bytes of whole
 * records into fields, and finds where records end in a chunk that may begin inside a quoted field.
 */

const NEWLINE = 0x0a
const RETURN = 0x0d
const COMMA = 0x2c
const QUOTE = 0x22

type Place = 'start' | 'plain' | 'quoted' | 'closing'

/** Follows quotes from chunk to chunk. A quote counts only at a field's start, so that a stray one inside is harmless. */
export class RecordLocator {
  #place: Place = 'start'

  restart(): void {
    this.#place = 'start'
  }

  /** @returns positions behind the first and the last complete record, 0 for none */
  locate(chunk: Uint8Array): { first: number; last: number } {
    let first = 0
    let last = 0
    let place = this.#place
    let from = 0
    if ((place === 'start' || place === 'plain') && !chunk.includes(QUOTE)) {
      // Without quotes every newline ends a record: only what follows the last one matters for the next chunk.
      first = chunk.indexOf(NEWLINE) + 1
      last = chunk.lastIndexOf(NEWLINE) + 1
      if (last > 0) place = 'start'
      from = last
    }
    for (let i = from; i < chunk.length; i++) {
      if (place === 'quoted') {
        const quote = chunk.indexOf(QUOTE, i)
        if (quote < 0) break
        i = quote
        place = 'closing'
        continue
      }
      const byte = chunk[i]
      if (byte === NEWLINE) {
        last = i + 1
        if (first === 0) first = last
        place = 'start'
      } else if (byte === COMMA) {
        place = 'start'
      } else if (byte === QUOTE && place !== 'plain') {
        place = 'quoted'
      } else if (place === 'start') {
        // Spaces before a quote belong to what is trimmed.
        if (byte !== 0x20 && byte !== 0x09) place = 'plain'
      } else if (place === 'closing') {
        place = 'plain'
      }
    }
    this.#place = place
    return { first, last }
  }
}

/**
 * The fields of one record after another. White space around a field is dropped, that within quotes kept. Field f is
 * `bytes[from[f], to[f])` of `text[f]`.
 */
export class RecordSplitter {
  readonly text: Uint8Array[] = []
  readonly from: number[] = []
  readonly to: number[] = []
  /** Fields of the record split last. */
  count = 0
  /** Newlines in the record split last, the one at its end included. */
  lines = 0
  /** Why the record is malformed, and where; empty if it is not. */
  fault = ''
  at = 0

  /** Splits the record at `start`. @returns the position behind its newline, also if it is malformed */
  split(bytes: Uint8Array, start: number): number {
    this.count = 0
    this.lines = 1
    this.fault = ''
    let position = start
    for (;;) {
      while (bytes[position] === 0x20 || bytes[position] === 0x09) position++
      position = bytes[position] === QUOTE ? this.#quoted(bytes, position) : this.#plain(bytes, position)
      const byte = bytes[position++]
      if (byte === NEWLINE) return position
    }
  }

  /** @returns the position of the comma or newline behind the field */
  #plain(bytes: Uint8Array, from: number): number {
    let position = from
    while (bytes[position] !== COMMA && bytes[position] !== NEWLINE) position++
    let to = position
    while (to > from && (bytes[to - 1] === 0x20 || bytes[to - 1] === 0x09 || bytes[to - 1] === RETURN)) to--
    this.#add(bytes, from, to)
    return position
  }

  #quoted(bytes: Uint8Array, open: number): number {
    let close = bytes.indexOf(QUOTE, open + 1)
    let escapes = 0
    // Pairs of quotes stand for one. A record is complete, or ended by the end of the input.
    while (close >= 0 && bytes[close + 1] === QUOTE) {
      escapes++
      close = bytes.indexOf(QUOTE, close + 2)
    }
    if (close < 0) {
      this.#fail(open, 'a quoted field is not closed')
      return bytes.lastIndexOf(NEWLINE)
    }
    for (let i = open; i < close; i++) if (bytes[i] === NEWLINE) this.lines++
    if (escapes === 0) this.#add(bytes, open + 1, close)
    else this.#addUnescaped(bytes, open + 1, close)
    let position = close + 1
    while (bytes[position] === 0x20 || bytes[position] === 0x09 || bytes[position] === RETURN) position++
    if (bytes[position] === COMMA || bytes[position] === NEWLINE) return position
    this.#fail(position, 'expected a comma after the closing quote')
    while (bytes[position] !== COMMA && bytes[position] !== NEWLINE) position++
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

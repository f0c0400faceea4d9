/** A JSON scanner over bytes for rows of features: reads strings and numbers in place, and skips everything else. */
import { DecimalScanner, isFiniteFloat32 } from './decimals.js'
import { isEqual } from './labels.js'

const QUOTE = 0x22
const BACKSLASH = 0x5c
/** Limit of nesting, to bound the recursion. */
const MAX_DEPTH = 64

export class JsonScanner {
  /** The string read last: `text[from, to)`. Valid until the next string is read. */
  text: Uint8Array = new Uint8Array(0)
  from = 0
  to = 0
  /** The number read last. */
  number = 0
  /** Why the last call returned −1, and where. */
  fault = ''
  at = 0
  readonly #decimals = new DecimalScanner()

  space(bytes: Uint8Array, from: number): number {
    let position = from
    while (bytes[position] === 0x20 || bytes[position] === 0x09 || bytes[position] === 0x0d) position++
    return position
  }

  /** Reads the string that starts at `open`. @returns the position after it, −1 on error */
  string(bytes: Uint8Array, open: number): number {
    if (bytes[open] !== QUOTE) return this.fail(open, 'expected a string in double quotes')
    let position = open + 1
    let isEscaped = false
    while (bytes[position] !== QUOTE) {
      if (bytes[position] < 0x20) return this.fail(position, 'a string is not closed')
      if (bytes[position] === BACKSLASH) {
        isEscaped = true
        if (bytes[++position] < 0x20) return this.fail(position, 'a string is not closed')
      }
      position++
    }
    this.text = bytes
    this.from = open + 1
    this.to = position
    return isEscaped ? this.#unescape(bytes, open, position + 1) : position + 1
  }

  /** Reads the finite number at `from`. @returns the position after it, −1 on error */
  finite(bytes: Uint8Array, from: number): number {
    this.number = this.#decimals.scan(bytes, from)
    if (isFiniteFloat32(this.number)) return this.#decimals.end
    return this.fail(from, 'expected a finite float32 number')
  }

  /** Skips `true`, `false` or `null` at `from`. @returns the position after it, −1 if it is none of them */
  literal(bytes: Uint8Array, from: number): number {
    const literal = this.#literal(bytes, from)
    return literal === '' ? this.fail(from, 'expected a JSON value') : from + literal.length
  }

  /**
   * Visits the members of the object at `open`. `visit` receives the position of each value, while the key is the string read
   * last, and returns the position after the value, or −1.
   * @returns the position after the object, −1 on error
   */
  members(bytes: Uint8Array, open: number, visit: (bytes: Uint8Array, value: number) => number): number {
    let position = this.space(bytes, open + 1)
    if (bytes[position] === 0x7d) return position + 1
    for (;;) {
      position = this.#key(bytes, position)
      if (position >= 0) position = visit(bytes, position)
      if (position >= 0) position = this.#next(bytes, position, 0x7d)
      if (position < 0 || bytes[position - 1] === 0x7d) return position
    }
  }

  /** Visits the elements of the array at `open`, like `members`. */
  elements(bytes: Uint8Array, open: number, visit: (bytes: Uint8Array, value: number) => number): number {
    let position = this.space(bytes, open + 1)
    if (bytes[position] === 0x5d) return position + 1
    for (;;) {
      position = visit(bytes, position)
      if (position >= 0) position = this.#next(bytes, position, 0x5d)
      if (position < 0 || bytes[position - 1] === 0x5d) return position
    }
  }

  /** The object at `open` with the last value of each key, which is written as it was. @returns undefined on error */
  lastOfKeys(bytes: Uint8Array, open: number): string | undefined {
    const values = new Map<string, string>()
    const visit = (inner: Uint8Array, value: number): number => {
      const key = Buffer.from(this.text.subarray(this.from, this.to)).toString('utf8')
      const end = this.skip(inner, value)
      if (end < 0) return end
      const own = inner[value] === 0x7b ? this.lastOfKeys(inner, value) : undefined
      values.delete(key)
      values.set(key, own ?? Buffer.from(inner.subarray(value, end)).toString('utf8'))
      return end
    }
    if (this.members(bytes, open, visit) < 0) return undefined
    return `{${[...values].map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')}}`
  }

  /** Passes over any value. @returns the position behind it, −1 for a fault */
  skip(bytes: Uint8Array, from: number, depth = 0): number {
    const byte = bytes[from]
    if (byte === QUOTE) return this.string(bytes, from)
    if (byte === 0x2d || (byte >= 0x30 && byte <= 0x39)) return this.finite(bytes, from)
    if (byte !== 0x7b && byte !== 0x5b) return this.literal(bytes, from)
    if (depth === MAX_DEPTH) return this.fail(from, `nested deeper than ${MAX_DEPTH}`)
    const deeper = (inner: Uint8Array, value: number) => this.skip(inner, value, depth + 1)
    return byte === 0x7b ? this.members(bytes, from, deeper) : this.elements(bytes, from, deeper)
  }

  /** Reads `"key":`. @returns the position of its value, −1 on error */
  #key(bytes: Uint8Array, from: number): number {
    let position = this.string(bytes, from)
    if (position < 0) return -1
    position = this.space(bytes, position)
    if (bytes[position] !== 0x3a) return this.fail(position, 'expected : after a key')
    return this.space(bytes, position + 1)
  }

  /**
   * Reads the comma or the closing bracket after a value.
   * @returns the position of the next value, or directly after `close`; −1 on error
   */
  #next(bytes: Uint8Array, from: number, close: number): number {
    const position = this.space(bytes, from)
    if (bytes[position] === close) return position + 1
    if (bytes[position] === 0x2c) return this.space(bytes, position + 1)
    return this.fail(position, `expected , or ${String.fromCharCode(close)}`)
  }

  fail(at: number, reason: string): -1 {
    this.at = at
    this.fault = reason
    return -1
  }

  #literal(bytes: Uint8Array, from: number): string {
    const matches = (literal: string) => [...literal].every((letter, i) => bytes[from + i] === letter.charCodeAt(0))
    return ['true', 'false', 'null'].find(matches) ?? ''
  }

  #unescape(bytes: Uint8Array, from: number, to: number): number {
    try {
      const quoted = Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString('utf8')
      this.text = Buffer.from(JSON.parse(quoted) as string)
    } catch {
      return this.fail(from, 'a string has an invalid escape')
    }
    this.from = 0
    this.to = this.text.length
    return to
  }
}

/** The text that was scanned last. */
export function textOf({ text, from, to }: JsonScanner): string {
  return Buffer.from(text.subarray(from, to)).toString('utf8')
}

/** Whether the text that was scanned last equals a key. */
export function isText({ text, from, to }: JsonScanner, other: Uint8Array): boolean {
  return isEqual(other, text, from, to)
}

/**
 * The canonical form of a category, so that a value is the same one in CSV, Parquet, JSON and a data frame: `True` is `true`, and `1.0`
 * is `1`. Digits keep their leading zeros, and whole numbers all of their digits.
 */

const ZERO = 0x30
const NINE = 0x39
const MINUS = 0x2d
const POINT = 0x2e
const TRUE = Buffer.from('true')
const FALSE = Buffer.from('false')

export class CategoryReader {
  /** The form of the last value: `text[from, to)`. */
  text: Uint8Array = TRUE
  from = 0
  to = 0

  /** Reads the value that the bytes in [from, to) are. */
  read(bytes: Uint8Array, from: number, to: number): void {
    this.text = bytes
    this.from = from
    this.to = to
    const first = bytes[from]
    const letter = first | 0x20
    if (letter === TRUE[0] && isWord(bytes, from, to, TRUE)) this.#set(TRUE)
    else if (letter === FALSE[0] && isWord(bytes, from, to, FALSE)) this.#set(FALSE)
    else if ((first >= ZERO && first <= NINE) || first === MINUS) this.#number(bytes, from, to)
  }

  #set(text: Uint8Array): void {
    this.text = text
    this.from = 0
    this.to = text.length
  }

  /** A number as JSON writes it: without zeros behind its point if there is nothing else, and without an exponent where it has none. */
  #number(bytes: Uint8Array, from: number, to: number): void {
    let position = from + Number(bytes[from] === MINUS)
    const whole = position
    while (position < to && bytes[position] >= ZERO && bytes[position] <= NINE) position++
    const isCode = bytes[whole] === ZERO && position > whole + 1
    if (position === whole || isCode) return
    const end = position
    let isWhole = true
    if (bytes[position] === POINT && position < to) {
      const point = position++
      while (position < to && bytes[position] >= ZERO && bytes[position] <= NINE) {
        if (bytes[position++] !== ZERO) isWhole = false
      }
      if (position === point + 1) return
    }
    if (position < to) {
      if ((bytes[position] | 0x20) !== 0x65) return
      const text = Buffer.from(bytes.subarray(from, to)).toString('latin1')
      if (/^[^eE]+[eE][+-]?\d+$/.test(text)) this.#set(Buffer.from(String(Number(text) + 0)))
      return
    }
    if (!isWhole) return
    // −0 is 0.
    if (bytes[from] === MINUS && end === whole + 1 && bytes[whole] === ZERO) this.from = whole
    this.to = end
  }
}

function isWord(bytes: Uint8Array, from: number, to: number, word: Uint8Array): boolean {
  if (to - from !== word.length) return false
  for (let i = 1; i < word.length; i++) if ((bytes[from + i] | 0x20) !== word[i]) return false
  return true
}

const shared = new CategoryReader()

/** The canonical form of a text. */
export function canonicalCategory(text: string): string {
  const bytes = Buffer.from(text)
  shared.read(bytes, 0, bytes.length)
  return Buffer.from(shared.text.subarray(shared.from, shared.to)).toString('utf8')
}

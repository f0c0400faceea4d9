/**
 * Categories in one canonical form, so that a value is the same one in CSV, Parquet, JSON and a data frame (`True` is `true`,
 * and `1.0` is `1`; digits keep their leading zeros), and the marks of missing values that programs and people write.
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

/** Marks of missing values in any column, besides the empty text. Case does not matter. */
const MARKS =
  'na n/a n.a. n.a #n/a #na nan -nan null none <na> <null> (null) nil nat \\n ? missing #null! #nv 1.#qnan -1.#qnan 1.#ind -1.#ind'
/** Marks that may be classes, so they are no missing labels. */
const WEAK_MARKS = '- -- --- . .. ... * / — – #value! #ref! #div/0! #num! #name? k.a. n.d. nd undefined (blank) (empty)'
/** Marks of numbers. */
const INFINITIES = 'inf +inf -inf infinity +infinity -infinity ∞ +∞ -∞ −∞ 1.#inf -1.#inf'
/** Marks of labels, in this case only. */
const LABEL_MARKS = 'NA N/A NaN nan null NULL None ? <NA> #N/A \\N NaT'

/** Texts of missing values that need no notice. */
export const COMMON_MISSING: ReadonlySet<string> = new Set([
  '',
  'NA',
  'N/A',
  'n/a',
  'NaN',
  'nan',
  'null',
  'NULL',
  'None',
  '?',
  '<NA>'
])

/** Among the missing values of a column: every text that is no number or no time. */
export const ANY_TEXT = '*'

type MarksOf = 'label' | 'number' | 'other'

/** Recognises missing values in bytes. */
export class MissingValues {
  readonly #texts: readonly Uint8Array[]
  readonly #isExact: boolean
  /** Whether a text starts with the byte, and the lengths that such texts may have, as bits. */
  readonly #lengths = new Uint32Array(256)

  /** @param given exact texts @default the usual marks, in any case */
  constructor(given?: readonly string[], of: MarksOf = 'other', further: readonly string[] = []) {
    const usual = of === 'label' ? [LABEL_MARKS] : [MARKS, WEAK_MARKS, ...(of === 'number' ? [INFINITIES] : [])]
    const texts = given ?? usual.flatMap(list => list.split(' ')).concat(of === 'label' ? [] : '#n/a n/a')
    this.#isExact = given !== undefined || of === 'label'
    const known = [...texts, ...further.map(text => (this.#isExact ? text : lowerCase(text)))]
    this.#texts = known.map(text => Buffer.from(text)).filter(({ length }) => length > 0)
    for (const text of this.#texts) {
      this.#lengths[text[0]] |= bitOf(text.length)
      if (!this.#isExact) this.#lengths[upper(text[0])] |= bitOf(text.length)
    }
  }

  includes(bytes: Uint8Array, from: number, to: number): boolean {
    const length = to - from
    if (length === 0) return true
    if ((this.#lengths[bytes[from]] & bitOf(length)) === 0) return false
    for (const text of this.#texts) {
      if (text.length !== length) continue
      let i = 0
      while (i < length && text[i] === (this.#isExact ? bytes[from + i] : lower(bytes[from + i]))) i++
      if (i === length) return true
    }
    return false
  }

  /** The same for a text. */
  has(text: string): boolean {
    const bytes = Buffer.from(text)
    return this.includes(bytes, 0, bytes.length)
  }
}

/** Lengths from 31 on share a bit. */
function bitOf(length: number): number {
  return 1 << Math.min(31, length)
}

function lower(byte: number): number {
  return byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte
}

function upper(byte: number): number {
  return byte >= 0x61 && byte <= 0x7a ? byte & ~0x20 : byte
}

/** With letters of ASCII in lower case. */
function lowerCase(text: string): string {
  return text.replace(/[A-Z]/g, letter => letter.toLowerCase())
}

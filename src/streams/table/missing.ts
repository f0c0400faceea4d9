/** The marks of missing values that programs and people write. */

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

export type MarksOf = 'label' | 'number' | 'other'

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

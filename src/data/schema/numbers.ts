/**
 * Numbers as people write them: decimal and thousands marks of any country, signs, per cent and currency. One mark before exactly
 * three digits is ambiguous (`1,234`), and its column decides what it means. Any other number means what its own marks say.
 */
import { DecimalScanner, isFiniteFloat32 } from '../formats/decimals.js'

/** The marks that are decimal where a number is ambiguous; others divide thousands. */
export type DecimalMark = '.' | ',' | 'both'

const POINT = 0x2e
const COMMA = 0x2c
const SPACE = 0x20
const APOSTROPHE = 0x27
const MINUS = 0x2d
const PLUS = 0x2b
const ZERO = 0x30
/** Longest text that may be a number, in bytes. */
const MAX_LENGTH = 64

/** Codes of ISO 4217 and abbreviations of frequent currencies. */
const CODES =
  'USD|EUR|GBP|JPY|CHF|CNY|RMB|INR|AUD|CAD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|RON|BGN|RUB|TRY|BRL|MXN|ZAR|KRW|SGD|HKD|TWD|THB|IDR|MYR|PHP|VND|ILS|AED|SAR|EGP|NGN|KES|UAH|ARS|CLP|COP|PEN|ISK|Euro|euro|Fr\\.?|Rs\\.?|kr\\.?|zł|Kč|Ft|lei|руб\\.?|円|元|원'
const CURRENCY = `(?:[A-Z]{0,3}\\p{Sc}|${CODES})`
const LEADING = new RegExp(`^([-+(]?)\\s*${CURRENCY}\\s*(?=[-+.,\\d])`, 'u')
const TRAILING = new RegExp(`(?<=[\\d.,-])\\s*${CURRENCY}(?=[-)]?$)`, 'u')

/** The ASCII notation of a number in other characters: digits, signs, spaces and marks of any script, without a currency. */
function plainText(text: string): string {
  return text
    .normalize('NFKC')
    .replace(/[\u2010-\u2015\u2212\ufe63]/g, '-')
    .replace(/[\u2018\u2019\u02bc\u2032]/g, "'")
    .replace(/\u066b/g, '.')
    .replace(/\u066c/g, "'")
    .replace(/\u066a/g, '%')
    .replace(/[\u0660-\u0669\u06f0-\u06f9\u0966-\u096f]/g, digit => String((digit.charCodeAt(0) & 15) % 10))
    .trim()
    .replace(LEADING, '$1')
    .replace(TRAILING, '')
}

/** Reads numbers in any notation. */
export class NumberReader {
  /** What the marks of the last number can only mean. */
  pointIsDecimal = false
  commaIsDecimal = false
  pointIsGroup = false
  commaIsGroup = false
  /** The mark of the last number that can mean both; 0 for none. */
  ambiguous = 0
  /** Digits of the last number before its decimal mark, and behind it. */
  whole = 0
  fraction = 0
  readonly #scanner = new DecimalScanner()
  readonly #digits = new Uint8Array(MAX_LENGTH + 2)
  /** The marks of the current number from 1 on, and the lengths of the runs of digits between them from 0 on. */
  readonly #marks = new Uint8Array(MAX_LENGTH + 1)
  readonly #runs = new Uint8Array(MAX_LENGTH + 1)

  /**
   * The number that the bytes in [from, to) are.
   * @param decimal what a mark means that is ambiguous @default '.'
   * @returns NaN if they are none, or none that is finite
   */
  read(bytes: Uint8Array, from: number, to: number, decimal: DecimalMark = '.'): number {
    if (to - from > MAX_LENGTH || to <= from) return Number.NaN
    for (let i = from; i < to; i++) {
      const byte = bytes[i]
      const isPlain = byte < 0x80 && ((byte | 0x20) < 0x61 || (byte | 0x20) > 0x7a || (byte | 0x20) === 0x65)
      if (isPlain) continue
      const text = Buffer.from(bytes.subarray(from, to)).toString('utf8')
      // A word without digits is no number.
      if (!/\p{Nd}/u.test(text)) return Number.NaN
      const plain = Buffer.from(plainText(text))
      return plain.length > MAX_LENGTH ? Number.NaN : this.#plain(plain, 0, plain.length, decimal)
    }
    return this.#plain(bytes, from, to, decimal)
  }

  /** Reads ASCII characters. */
  #plain(bytes: Uint8Array, first: number, end: number, decimal: DecimalMark): number {
    let [from, to] = [first, end]
    let isNegative = false
    let signs = 0
    const sign = (byte: number) => {
      if (byte !== MINUS && byte !== PLUS) return false
      isNegative = byte === MINUS
      signs++
      return true
    }
    // Around the digits: (12.50), -$12, $ -12, 12 %, 12-.
    if (bytes[from] === 0x28 && bytes[to - 1] === 0x29) {
      isNegative = true
      signs++
      from++
      to--
    }
    if (sign(bytes[from])) from++
    while (bytes[from] === SPACE) from++
    if (bytes[from] === 0x24) {
      from++
      while (bytes[from] === SPACE) from++
      if (sign(bytes[from])) from++
    }
    if (bytes[to - 1] === 0x25 || bytes[to - 1] === 0x24) to--
    while (to > from && bytes[to - 1] === SPACE) to--
    if (to > from && bytes[to - 1] === MINUS && sign(MINUS)) to--
    if (signs > 1) return Number.NaN
    const value = this.#unsigned(bytes, from, to, decimal)
    return isNegative ? -value : value
  }

  #unsigned(bytes: Uint8Array, from: number, to: number, decimal: DecimalMark): number {
    this.#forget()
    const [digits, marks, runs] = [this.#digits, this.#marks, this.#runs]
    let length = 0
    let count = 0
    runs[0] = 0
    let position = from
    for (; position < to; position++) {
      const byte = bytes[position]
      if (byte >= ZERO && byte <= ZERO + 9) {
        digits[length++] = byte
        runs[count]++
      } else if (byte === POINT || byte === COMMA || byte === SPACE || byte === APOSTROPHE) {
        marks[++count] = byte
        runs[count] = 0
      } else break
    }
    const exponent = position
    const hasExponent = (bytes[position] | 0x20) === 0x65
    if ((position < to && !hasExponent) || length === 0) return Number.NaN
    const fraction = this.#fraction(count, decimal, hasExponent)
    if (fraction < 0) return Number.NaN
    this.whole = length - fraction
    this.fraction = fraction
    if (fraction > 0) {
      digits.copyWithin(length - fraction + 1, length - fraction, length)
      digits[length++ - fraction] = POINT
    }
    for (let i = exponent; i < to; i++) digits[length++] = bytes[i]
    digits[length] = SPACE
    const value = this.#scanner.scan(digits, 0)
    return this.#scanner.end === length && Number.isFinite(value) ? value : Number.NaN
  }

  /** The number of digits behind the decimal mark, for runs of digits between marks; −1 if they are no number. */
  #fraction(count: number, decimal: DecimalMark, hasExponent: boolean): number {
    if (count === 0) return 0
    const [marks, runs] = [this.#marks, this.#runs]
    const last = marks[count]
    const first = marks[1]
    if (count === 1 && (last === POINT || last === COMMA)) {
      const isAmbiguous = !hasExponent && runs[1] === 3 && this.#areGroups(1)
      const isDecimal = !isAmbiguous || (last === POINT ? decimal !== ',' : decimal !== '.')
      if (isAmbiguous) this.ambiguous = last
      else if (last === POINT) this.pointIsDecimal = true
      else this.commaIsDecimal = true
      return isDecimal ? runs[1] : 0
    }
    if (last === first) {
      if (!this.#areGroups(count)) return -1
      this.pointIsGroup = first === POINT
      this.commaIsGroup = first === COMMA
      return 0
    }
    if ((last !== POINT && last !== COMMA) || !this.#areGroups(count - 1)) return -1
    this.pointIsDecimal = last === POINT
    this.commaIsDecimal = last === COMMA
    this.pointIsGroup = first === POINT
    this.commaIsGroup = first === COMMA
    return runs[count]
  }

  /** Whether the first marks are equal and divide thousands, or as in India hundreds before them: 1,234,567 or 12,34,567. */
  #areGroups(count: number): boolean {
    const [marks, runs] = [this.#marks, this.#runs]
    if (runs[0] < 1 || runs[0] > 3 || this.#digits[0] === ZERO || runs[count] !== 3) return false
    const size = count > 1 && marks[1] === COMMA && runs[1] === 2 ? 2 : 3
    for (let i = 1; i <= count; i++) if (marks[i] !== marks[1] || (i < count && runs[i] !== size)) return false
    return true
  }

  #forget(): void {
    this.pointIsDecimal = false
    this.commaIsDecimal = false
    this.pointIsGroup = false
    this.commaIsGroup = false
    this.ambiguous = 0
  }
}

const shared = new NumberReader()

/** The finite float32 number that a text is. @param decimal what an ambiguous mark means */
export function numberOf(text: string, decimal?: DecimalMark): number | undefined {
  const bytes = Buffer.from(text)
  const value = shared.read(bytes, 0, bytes.length, decimal)
  return isFiniteFloat32(value) ? value : undefined
}

/** The evidence of some values. */
export function marksOf(values: readonly string[]): MarkEvidence {
  const marks = new MarkEvidence()
  for (const value of values) marks.add(value)
  return marks
}

/** What the numbers of a column say of its marks. */
export class MarkEvidence {
  /** Values that are numbers. */
  numbers = 0
  #pointDecimal = 0
  #commaDecimal = 0
  #pointGroup = 0
  #commaGroup = 0
  #ambiguousPoint = 0
  #ambiguousComma = 0
  /** Whole numbers without a mark of up to 3 digits, and of more. */
  #short = 0
  #long = 0

  /** Counts a value. @returns whether it is a number */
  add(text: string): boolean {
    if (numberOf(text) === undefined) return false
    this.numbers++
    const { pointIsDecimal, commaIsDecimal, pointIsGroup, commaIsGroup, ambiguous, whole } = shared
    if (pointIsDecimal) this.#pointDecimal++
    if (commaIsDecimal) this.#commaDecimal++
    if (pointIsGroup) this.#pointGroup++
    if (commaIsGroup) this.#commaGroup++
    if (ambiguous === POINT) this.#ambiguousPoint++
    if (ambiguous === COMMA) this.#ambiguousComma++
    if (!(pointIsDecimal || commaIsDecimal || pointIsGroup || commaIsGroup || ambiguous)) {
      if (whole > 3) this.#long++
      else this.#short++
    }
    return true
  }

  /** Whether numbers have a decimal comma that can be nothing else, and none has such a point. */
  get hasDecimalComma(): boolean {
    return this.#commaDecimal > 0 && this.#pointDecimal === 0
  }

  get hasDecimalPoint(): boolean {
    return this.#pointDecimal > 0
  }

  /** Whether any number has a mark. */
  get hasMarks(): boolean {
    return this.numbers > this.#short + this.#long
  }

  /** Whether any number has a mark that may divide thousands. */
  get hasGroups(): boolean {
    return this.#pointGroup + this.#commaGroup + this.#ambiguousPoint + this.#ambiguousComma > 0
  }

  isAmbiguous(text: string): boolean {
    return numberOf(text) !== undefined && shared.ambiguous !== 0
  }

  /** Values whose decimal marks contradict each other: those of the rarer kind. */
  get contradictions(): number {
    return Math.min(this.#pointDecimal, this.#commaDecimal)
  }

  /**
   * What ambiguous marks mean.
   * @param usual of other columns, or of the model
   * @returns `isGuess` if the column could be read differently, and its values would differ by more than a factor
   */
  decide(usual: DecimalMark | undefined): { readonly decimal: DecimalMark | undefined; readonly isGuess: boolean } {
    const point = this.#isDecimal(this.#ambiguousPoint, this.#pointDecimal, this.#pointGroup, this.#commaDecimal)
    const comma = this.#isDecimal(this.#ambiguousComma, this.#commaDecimal, this.#commaGroup, this.#pointDecimal)
    const isPoint = point ?? this.#guessPoint(usual)
    const isComma = comma ?? (usual === ',' || usual === 'both')
    const isGuess =
      usual === undefined &&
      ((point === undefined && this.#ambiguousPoint > 0 && !isPoint) ||
        (comma === undefined && this.#ambiguousComma > 0 && this.#short === 0))
    const hasPoints = this.#ambiguousPoint + this.#pointDecimal > 0
    if (isComma && this.#ambiguousComma + this.#commaDecimal > 0) {
      return { decimal: isPoint && hasPoints ? 'both' : ',', isGuess }
    }
    return { decimal: isPoint ? undefined : ',', isGuess }
  }

  /** Whether a mark is decimal; undefined if the numbers do not say it. */
  #isDecimal(ambiguous: number, decimal: number, group: number, other: number): boolean | undefined {
    if (decimal > 0 || group > 0) return decimal >= group
    if (other > 0) return false
    // A long number without a mark shows that thousands are not divided.
    if (ambiguous > 0 && this.#long > 0) return true
    return undefined
  }

  /** `1.500` beside `950`: a fraction of exactly three digits in every number, and none in others, divides thousands. */
  #guessPoint(usual: DecimalMark | undefined): boolean {
    if (usual !== undefined) return usual !== ','
    return !(this.#ambiguousPoint > 2 && this.#short > 0)
  }
}

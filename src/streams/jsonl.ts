/**
 * JSON lines: `{"label": …, "features": {…}}`, `{"label": …, "features": […]}`, or a flat object of which every key but
 * the label's is a feature. Named features are hashed: `name` with the number's value, `name=text` with 1, true and
 * false as 1 and 0; null is a missing value. An array gives features 0 … n−1, all rows the same n. Where the number of
 * features was given, and no hashing asked for, names must be feature numbers, counted from 0 as in an array.
 */
import { DEFAULT_HASH_BITS, murmur3 } from './hash.js'
import { JsonScanner } from './json.js'
import { LabelReader, REFUSED, shortened } from './labels.js'
import { locateLines, type RowFormat } from './lines.js'
import type { ParserOptions } from './options.js'
import type { Reporter } from './reporter.js'
import { RowBuffer } from './rows.js'

const QUOTE = 0x22
const OBJECT = 0x7b
const ARRAY = 0x5b
/** First letters tell the three words of JSON apart. */
const TRUE = 0x74
const FALSE = 0x66
const NULL = 0x6e
const FEATURES = Buffer.from('features')
const SHAPES = { array: 'an array', named: 'named' }

export class JsonlFormat implements RowFormat {
  readonly labels: LabelReader
  readonly locate = locateLines
  readonly #options: ParserOptions
  readonly #reporter: Reporter
  readonly #scanner = new JsonScanner()
  readonly #labelKey: Buffer
  readonly #ignored: readonly Buffer[]
  readonly #constant: number
  readonly #mask: number
  /** Names are feature numbers. */
  readonly #isNumbered: boolean
  /** Names are columns: where the hashed space begins, 0 unless so. */
  readonly #columns: readonly Buffer[]
  /** Whether texts are features: without a hashed space they cannot be. */
  readonly #hasHashed: boolean
  #out = new RowBuffer()
  #line = 0
  /** What the first row, or an option, told of all. */
  #shape: 'unknown' | 'named' | 'array' = 'unknown'
  #length: number | undefined
  /** The row at hand: entries so far, its numbers first, then (kept aside) features that are 1 because of a text. */
  #entry = 0
  readonly #texts: number[] = []
  #label = Number.NaN
  #rowShape: 'flat' | 'named' | 'array' = 'flat'
  /** Elements of its array. */
  #position = 0
  /** What is wrong with a member, unless that turns out to be a remark beside `features`; and where. */
  #flaw = ''
  #flawAt = 0

  constructor(options: ParserOptions, reporter: Reporter) {
    this.#options = options
    this.#reporter = reporter
    this.labels = new LabelReader(options)
    this.#labelKey = Buffer.from(options.label ?? 'label')
    this.#ignored = (options.ignore ?? []).map(key => Buffer.from(key))
    this.#constant = options.constant ? 1 : 0
    this.#columns = (options.columns ?? []).map(name => Buffer.from(name))
    const hashed = options.hashBits !== undefined ? 2 ** options.hashBits : 2 ** DEFAULT_HASH_BITS
    const isTabular = options.columns !== undefined
    const behind = (options.dimension ?? this.#columns.length + hashed) - this.#columns.length
    this.#mask = (isTabular ? behind : hashed) - 1
    this.#hasHashed = this.#mask >= 0
    this.#length = isTabular ? this.#columns.length : options.dimension
    this.#isNumbered = options.dimension !== undefined && !isTabular
    if (isTabular) this.#shape = 'named'
    else if (this.#isNumbered) this.#shape = 'array'
    else if (options.hashBits !== undefined) this.#shape = 'named'
  }

  /** Known from the options or the first row. */
  get dimension(): number | undefined {
    switch (this.#shape) {
      case 'unknown':
        return undefined
      case 'named':
        return this.#columns.length + this.#mask + 1
      case 'array':
        return this.#length
      default:
        return this.#shape satisfies never
    }
  }

  get hashBits(): number | undefined {
    return this.#shape === 'named' && this.#hasHashed ? Math.log2(this.#mask + 1) : undefined
  }

  restart(): void {
    this.#line = 0
  }

  parse(bytes: Uint8Array, from: number, to: number, out: RowBuffer): void {
    const scanner = this.#scanner
    this.#out = out
    for (let start = from; start < to; ) {
      const end = bytes.indexOf(0x0a, start)
      this.#line++
      const first = scanner.space(bytes, start)
      if (first !== end && this.#row(bytes, first, end) < 0) {
        this.#reporter.report(this.#line, scanner.at - start + 1, scanner.fault)
      }
      start = end + 1
    }
  }

  /** Appends the row whose object opens at `open`. @returns −1 for a fault: then the batch is as it was */
  #row(bytes: Uint8Array, open: number, end: number): number {
    const scanner = this.#scanner
    if (bytes[open] !== OBJECT) return scanner.fail(open, 'expected a JSON object on each line')
    this.#clear('flat')
    this.#label = Number.NaN
    const position = scanner.members(bytes, open, this.#member)
    if (position < 0) return -1
    const after = scanner.space(bytes, position)
    if (after !== end) return scanner.fail(after, 'expected nothing behind the object')
    if (this.#flaw !== '') return scanner.fail(this.#flawAt, this.#flaw)
    if (Number.isNaN(this.#label) && !this.#options.unlabelled) {
      return scanner.fail(open, `there is no label under the key "${this.#labelKey}"`)
    }
    const shape = this.#rowShape === 'array' ? 'array' : 'named'
    if (this.#shape === 'unknown') this.#shape = shape
    const isEither = this.#isNumbered || this.#options.columns !== undefined
    if (this.#shape !== shape && !isEither) {
      return scanner.fail(open, `the features are ${SHAPES[shape]}, expected ${SHAPES[this.#shape]}`)
    }
    if (shape === 'array') {
      if (this.#position === 0) return scanner.fail(open, 'the array of features is empty')
      this.#length ??= this.#position
      if (this.#position !== this.#length) {
        return scanner.fail(open, `an array of ${this.#position} features, expected ${this.#length}`)
      }
    }
    this.#commit()
    return position
  }

  #clear(shape: 'flat' | 'named' | 'array'): void {
    this.#rowShape = shape
    this.#entry = this.#out.entries
    this.#texts.length = 0
    this.#position = 0
    this.#flaw = ''
  }

  #commit(): void {
    const out = this.#out
    out.numeric[out.size] = this.#entry - out.entries
    if (this.#constant === 1) this.#texts.push(0)
    for (const index of this.#texts) this.#add(index, 1)
    out.labels[out.size] = this.#label
    out.entries = this.#entry
    out.offsets[++out.size] = this.#entry
  }

  #add(index: number, value: number): void {
    this.#out.indices[this.#entry] = index
    this.#out.values[this.#entry++] = value
  }

  /** A member of the row's own object. */
  readonly #member = (bytes: Uint8Array, value: number): number => {
    const scanner = this.#scanner
    const byte = bytes[value]
    if (this.#isKey(this.#labelKey)) return this.#readLabel(bytes, value)
    if (byte === OBJECT && this.#isKey(FEATURES)) {
      this.#clear('named')
      return scanner.members(bytes, value, this.#named)
    }
    if (byte === ARRAY && this.#isKey(FEATURES)) {
      this.#clear('array')
      return scanner.elements(bytes, value, this.#element)
    }
    // Beside `features` other members are remarks.
    if (this.#rowShape !== 'flat') return scanner.skip(bytes, value)
    return this.#named(bytes, value)
  }

  readonly #named = (bytes: Uint8Array, value: number): number => {
    const scanner = this.#scanner
    if (this.#ignored.some(key => this.#isKey(key))) return scanner.skip(bytes, value)
    const byte = bytes[value]
    if (byte === OBJECT || byte === ARRAY) {
      this.#blame(value, 'a feature must be a number, a text or a truth value: flatten what is nested')
      return scanner.skip(bytes, value)
    }
    const column = this.#columns.findIndex(key => this.#isKey(key))
    const hash = this.#isNumbered ? 0 : murmur3(scanner.text, scanner.from, scanner.to, 0)
    if (byte === QUOTE) {
      const end = scanner.string(bytes, value)
      if (end < 0) return -1
      if (this.#isNumbered || !this.#hasHashed || column >= 0) {
        this.#blame(value, 'a text is a feature only where features are hashed: give a number')
      }
      const text = murmur3(scanner.text, scanner.from, scanner.to, hash)
      this.#texts.push(this.#columns.length + (text & this.#mask) + this.#constant)
      return end
    }
    if (byte === NULL) return scanner.word(bytes, value)
    const index = this.#indexOf(column, hash, value) + this.#constant
    if (byte === TRUE || byte === FALSE) {
      if (byte === TRUE) this.#texts.push(index)
      return scanner.word(bytes, value)
    }
    const end = scanner.finite(bytes, value)
    if (end >= 0) this.#add(index, scanner.number)
    return end
  }

  /** The feature of the member at hand, whose value is no text. */
  #indexOf(column: number, hash: number, value: number): number {
    if (this.#isNumbered) return this.#featureNumber(value)
    if (this.#options.columns === undefined) return hash & this.#mask
    if (column >= 0) return column
    const { text, from, to } = this.#scanner
    const name = shortened(Buffer.from(text.subarray(from, to)).toString('utf8'))
    this.#blame(value, `"${name}" is no numeric column of the model`)
    return 0
  }

  #blame(at: number, reason: string): void {
    if (this.#flaw !== '') return
    this.#flaw = reason
    this.#flawAt = at
  }

  /** The member's name as a feature number; where it is none, that is the row's flaw. */
  #featureNumber(value: number): number {
    const { text, from, to } = this.#scanner
    const limit = this.#length ?? 0
    let number = to > from && to - from <= 10 ? 0 : limit
    for (let i = from; i < to && number < limit; i++) {
      const digit = text[i] - 0x30
      number = digit >= 0 && digit <= 9 ? 10 * number + digit : limit
    }
    if (number < limit) return number
    const name = shortened(Buffer.from(text.subarray(from, to)).toString('utf8'))
    this.#blame(value, `"${name}" is no feature number from 0 to ${limit - 1}`)
    return 0
  }

  readonly #element = (bytes: Uint8Array, value: number): number => {
    const index = this.#position++ + this.#constant
    if (bytes[value] === NULL) return this.#scanner.word(bytes, value)
    const end = this.#scanner.finite(bytes, value)
    if (end >= 0) this.#add(index, this.#scanner.number)
    return end
  }

  #readLabel(bytes: Uint8Array, value: number): number {
    const scanner = this.#scanner
    const byte = bytes[value]
    let end: number
    if (byte === QUOTE) {
      end = scanner.string(bytes, value)
      if (end >= 0) this.#label = this.labels.text(scanner.text, scanner.from, scanner.to)
    } else if (byte === TRUE || byte === FALSE || byte === NULL) {
      end = scanner.word(bytes, value)
      if (end >= 0 && byte !== NULL) this.#label = this.labels.value(byte === TRUE ? 1 : 0)
    } else {
      end = scanner.finite(bytes, value)
      if (end >= 0) this.#label = this.labels.value(scanner.number)
    }
    return this.#label === REFUSED ? scanner.fail(value, this.labels.reason) : end
  }

  #isKey(key: Buffer): boolean {
    const { text, from, to } = this.#scanner
    return to - from === key.length && key.every((byte, i) => text[from + i] === byte)
  }
}

/**
 * JSON lines: `{"label": …, "features": {…}}`, `{"label": …, "features": […]}`, or a flat object in which every key except the
 * label's is a feature. Named features are hashed: `name` with the number as value, `name=text` with value 1; true and false are
 * 1 and 0, and null is a missing value. An array has the features 0 … n−1, with the same n in all rows. If the number of
 * features is given without hashing, names must be feature numbers from 0, as in an array. With a schema, keys are its columns.
 */
import { importance } from '../../base/errors.js'
import type { Reporter } from '../errors.js'
import type { ParserOptions } from '../options.js'
import { RowBuffer } from '../rows.js'
import { KeyedRow } from '../schema/keyed-row.js'
import type { ColumnRole, ColumnSchema } from '../types.js'
import { FieldRows } from './field-rows.js'
import { type RowParser, TABLE_OPTIONS, type TextDefinition } from './format.js'
import { DEFAULT_HASH_BITS, murmur3 } from './hash.js'
import { isText, JsonScanner, textOf } from './json.js'
import { formOfObject } from './json-form.js'
import { LabelReader, listed, REFUSED, shortened } from './labels.js'
import { noticeUnknown } from './libsvm.js'
import { locateLines } from './lines.js'

const NEWLINE = 0x0a
const QUOTE = 0x22
const OBJECT = 0x7b
const ARRAY = 0x5b
/** First letters of JSON's three literals. */
const TRUE = 0x74
const FALSE = 0x66
const NULL = 0x6e
const FEATURES = Buffer.from('features')
const LABEL = Buffer.from('label')
/** The column of features whose names are hashed. */
const NAMED: ColumnSchema = { name: '', kind: 'number' }
const SHAPES = { array: 'an array', named: 'named' }

export const jsonl: TextDefinition = {
  kind: 'text',
  summary: 'JSON lines: an object of features a line, named or in an array',
  fileName: /\.(jsonl|ndjson)$/,
  options: TABLE_OPTIONS.filter(option => option !== 'delimiter' && option !== 'header'),
  isSizedByFirstRow: true,
  createRowParser: (options, reporter) => new JsonlParser(options, reporter)
}

class JsonlParser implements RowParser {
  readonly labels: LabelReader
  readonly locate = locateLines
  readonly #options: ParserOptions
  readonly #reporter: Reporter
  readonly #scanner = new JsonScanner()
  readonly #labelKey: Buffer
  /** Whether the key `label` is the label under another name than its column, which has no other meaning. */
  readonly #hasPlainLabel: boolean
  readonly #ignored: readonly Buffer[]
  readonly #constant: number
  readonly #mask: number
  /** Whether names are feature numbers. */
  readonly #isNumbered: boolean
  /** If keys are columns. */
  readonly #table: KeyedRow | undefined
  #out = new RowBuffer()
  line = 0
  /** The shape of all rows, from an option or the first row. */
  #shape: 'unknown' | 'named' | 'array' = 'unknown'
  #length: number | undefined
  /** The current row: end of its numeric entries, and features with value 1, which follow them. */
  #entry = 0
  readonly #ones: number[] = []
  #label = Number.NaN
  #rowShape: 'flat' | 'named' | 'array' = 'flat'
  /** Number of elements of its array. */
  #position = 0
  /** The first invalid member and its position. Ignored if `features` follows, because other members are then skipped. */
  #invalid = ''
  #invalidAt = 0
  /** Position of the first value of the current row whose key is no column; -1 if there is none. */
  #unknownAt = -1
  #hasUnknown = false
  readonly #rows: FieldRows

  constructor(options: ParserOptions, reporter: Reporter) {
    this.#options = options
    this.#reporter = reporter
    this.labels = new LabelReader(options)
    this.#labelKey = Buffer.from(options.label ?? 'label')
    this.#hasPlainLabel = options.schema?.every(({ name }) => name !== 'label') ?? false
    this.#ignored = (options.ignore ?? []).map(key => Buffer.from(key))
    this.#constant = options.constant ? 1 : 0
    this.#table = options.schema && new KeyedRow(options.schema, options)
    this.#mask = 2 ** (options.hashBits ?? DEFAULT_HASH_BITS) - 1
    this.#length = this.#table?.layout.numbers ?? options.dimension
    this.#isNumbered = options.dimension !== undefined && this.#table === undefined
    if (this.#table !== undefined) this.#shape = 'named'
    else if (this.#isNumbered) this.#shape = 'array'
    else if (options.hashBits !== undefined) this.#shape = 'named'
    // A row may be read twice, which must have no effect on texts that are counted or named.
    const mayUseKernel = options.schema !== undefined && !options.onLabel && !options.onHashed
    const labelKeys = [this.#labelKey, ...(this.#hasPlainLabel ? [LABEL] : [])]
    this.#rows = new FieldRows({
      startsRows: (bytes, start) => mayUseKernel && bytes[start] === OBJECT,
      formOf: (bytes, start) =>
        this.#table &&
        formOfObject(bytes, start, this.#table, { ...options, labelKeys, ignored: this.#ignored, labels: this.labels }),
      row: (bytes, start) => this.#parseLine(bytes, start),
      parsed: () => {
        this.line++
      }
    })
  }

  /** Known from the options or the first row. */
  get dimension(): number | undefined {
    switch (this.#shape) {
      case 'unknown':
        return undefined
      case 'named':
        return this.#table === undefined ? this.#mask + 1 : (this.#options.dimension ?? this.#table.layout.dimension)
      case 'array':
        return this.#length
      default:
        return this.#shape satisfies never
    }
  }

  get hashBits(): number | undefined {
    if (this.#table !== undefined) return this.#options.hashBits
    return this.#shape === 'named' ? Math.log2(this.#mask + 1) : undefined
  }

  get schema(): readonly ColumnSchema[] | undefined {
    return this.#options.schema
  }

  restart(): void {
    this.line = 0
  }

  parse(bytes: Uint8Array, from: number, to: number, out: RowBuffer): void {
    this.#out = out
    this.#rows.parse(bytes, from, to, out)
  }

  /** Parses the line at `start`. @returns its end */
  #parseLine(bytes: Uint8Array, start: number): number {
    const scanner = this.#scanner
    const end = bytes.indexOf(NEWLINE, start)
    this.line++
    const first = scanner.space(bytes, start)
    if (first !== end && this.#row(bytes, first, end) < 0) {
      this.#reporter.report(this.line, scanner.at - start + 1, scanner.fault)
    }
    return end + 1
  }

  /** Appends the row whose object starts at `open`. @returns −1 on error, with the batch unchanged */
  #row(bytes: Uint8Array, open: number, end: number): number {
    const scanner = this.#scanner
    if (bytes[open] !== OBJECT) return scanner.fail(open, 'expected a JSON object on each line')
    this.#clear('flat')
    this.#label = Number.NaN
    const position = scanner.members(bytes, open, this.#member)
    if (position < 0) return -1
    const after = scanner.space(bytes, position)
    if (after !== end) return scanner.fail(after, 'unexpected text after the object')
    if (this.#table?.isRepeated) return this.#lastOfKeys(bytes, open, end)
    if (this.#invalid !== '') return scanner.fail(this.#invalidAt, this.#invalid)
    if (Number.isNaN(this.#label) && !this.#options.unlabelled) {
      return scanner.fail(open, `the label is missing (key "${this.#labelKey}")`)
    }
    if (this.#table?.lacksWeight && !this.#options.unlabelled) {
      return scanner.fail(open, `the weight is missing (key "${this.#table.lacksWeight}")`)
    }
    if (this.#table?.isEmpty && this.#unknownAt >= 0) {
      const columns = listed(this.#table.featureNames)
      return scanner.fail(this.#unknownAt, `none of the keys is a column of the model: give ${columns}`)
    }
    const shape = this.#rowShape === 'array' ? 'array' : 'named'
    if (this.#shape === 'unknown') this.#shape = shape
    const isEither = this.#isNumbered || this.#table !== undefined
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

  /** Reads the row again with the last value of each key, as `JSON.parse` does. */
  #lastOfKeys(bytes: Uint8Array, open: number, end: number): number {
    const text = this.#scanner.lastOfKeys(bytes, open)
    if (text === undefined) return -1
    const line = Buffer.from(`${text}\n`)
    return this.#row(line, 0, line.length - 1) < 0 ? -1 : end
  }

  #clear(shape: 'flat' | 'named' | 'array'): void {
    this.#rowShape = shape
    this.#table?.begin(this.#out, shape !== 'flat')
    this.#entry = this.#out.entries
    this.#ones.length = 0
    this.#position = 0
    this.#invalid = ''
    this.#unknownAt = -1
  }

  #commit(): void {
    const out = this.#out
    if (this.#table !== undefined) {
      this.#table.end(this.#label)
      return
    }
    out.numeric[out.size] = this.#entry - out.entries
    if (this.#constant === 1) this.#ones.push(0)
    for (const index of this.#ones) this.#add(index, 1)
    out.labels[out.size] = this.#label
    out.entries = this.#entry
    out.offsets[++out.size] = this.#entry
  }

  #add(index: number, value: number): void {
    this.#out.indices[this.#entry] = index
    this.#out.values[this.#entry++] = value
  }

  /** Reads a member of the row's object. */
  readonly #member = (bytes: Uint8Array, value: number): number => {
    const scanner = this.#scanner
    const byte = bytes[value]
    const role = this.#table?.roleOf(scanner.text, scanner.from, scanner.to)
    if (role !== undefined) return this.#readRole(this.#table as KeyedRow, role, bytes, value)
    if (this.#isKey(this.#labelKey) || (this.#hasPlainLabel && this.#isKey(LABEL))) return this.#readLabel(bytes, value)
    if (byte === OBJECT && this.#isKey(FEATURES)) {
      this.#clear('named')
      return scanner.members(bytes, value, this.#named)
    }
    if (byte === ARRAY && this.#isKey(FEATURES)) {
      this.#clear('array')
      return scanner.elements(bytes, value, this.#element)
    }
    // Members other than `features` and the label are skipped.
    if (this.#rowShape !== 'flat') return scanner.skip(bytes, value)
    return this.#named(bytes, value)
  }

  readonly #named = (bytes: Uint8Array, value: number): number => {
    const scanner = this.#scanner
    if (this.#ignored.some(key => this.#isKey(key))) return scanner.skip(bytes, value)
    if (this.#table !== undefined) return this.#field(this.#table, bytes, value)
    const byte = bytes[value]
    if (byte === OBJECT || byte === ARRAY) {
      this.#reject(value, 'a feature must be a number, a string or a boolean: flatten nested values')
      return scanner.skip(bytes, value)
    }
    const hash = this.#isNumbered ? 0 : murmur3(scanner.text, scanner.from, scanner.to, 0)
    const name = this.#options.onHashed && !this.#isNumbered ? textOf(scanner) : ''
    if (byte === QUOTE) {
      const end = scanner.string(bytes, value)
      if (end < 0) return -1
      if (this.#isNumbered) {
        this.#reject(value, 'a string can be a feature only if features are hashed: give a number')
      }
      const text = murmur3(scanner.text, scanner.from, scanner.to, hash)
      this.#ones.push((text & this.#mask) + this.#constant)
      this.#options.onHashed?.(this.#ones.at(-1) ?? 0, NAMED, `${name}=${textOf(scanner)}`)
      return end
    }
    if (byte === NULL) return scanner.literal(bytes, value)
    const number = this.#isNumbered ? this.#featureNumber(value) : hash & this.#mask
    if (number < 0) return scanner.skip(bytes, value)
    const index = number + this.#constant
    if (byte === TRUE || byte === FALSE) {
      if (byte === TRUE) this.#ones.push(index)
      if (name !== '') this.#options.onHashed?.(index, NAMED, name)
      return scanner.literal(bytes, value)
    }
    const end = scanner.finite(bytes, value)
    if (end >= 0) this.#add(index, scanner.number)
    if (name !== '') this.#options.onHashed?.(index, NAMED, name)
    return end
  }

  /** Reads a member whose key may be a column. */
  #field(table: KeyedRow, bytes: Uint8Array, value: number): number {
    const scanner = this.#scanner
    const role = table.roleOf(scanner.text, scanner.from, scanner.to)
    if (role !== undefined) return this.#readRole(table, role, bytes, value)
    const column = table.find(scanner.text, scanner.from, scanner.to)
    const byte = bytes[value]
    if (column === undefined || column.kind === 'ignored') {
      if (column === undefined) this.#noteUnknown(value)
      return scanner.skip(bytes, value)
    }
    if (byte === OBJECT || byte === ARRAY) {
      this.#reject(value, `the column "${column.name}" must be a number, a string or a boolean`)
      return scanner.skip(bytes, value)
    }
    if (byte === QUOTE) {
      const end = scanner.string(bytes, value)
      if (end < 0) return -1
      // The closing quote, or the byte after an unescaped copy, ends a number.
      if (!table.add(column, scanner.text, scanner.from, scanner.to)) this.#reject(value, table.fault)
      return end
    }
    const isLiteral = byte === TRUE || byte === FALSE || byte === NULL
    const end = isLiteral ? scanner.literal(bytes, value) : scanner.finite(bytes, value)
    if (end < 0) return -1
    if (byte === NULL) table.addMissing(column)
    else if (column.kind === 'number' && !column.date)
      table.addNumber(column, isLiteral ? Number(byte === TRUE) : scanner.number)
    else if (!table.add(column, bytes, value, end)) this.#reject(value, table.fault)
    return end
  }

  /** Notes a key that is no column, and reports the first one. */
  #noteUnknown(value: number): void {
    if (this.#unknownAt < 0) this.#unknownAt = value
    if (this.#hasUnknown) return
    this.#hasUnknown = true
    const { text, from, to } = this.#scanner
    const name = shortened(Buffer.from(text.subarray(from, to)).toString('utf8'))
    this.#options.onNotice?.(
      `${this.#reporter.source}: the model does not know the key ${name}, so it is ignored, like any other that it does not know`,
      importance.leftOut
    )
  }

  #reject(at: number, reason: string): void {
    if (this.#invalid !== '') return
    this.#invalid = reason
    this.#invalidAt = at
  }

  /** The member's name as a feature number, −1 if the model does not know it. If it is none, the row is rejected. */
  #featureNumber(value: number): number {
    const scanner = this.#scanner
    const { text, from, to } = scanner
    const limit = this.#length ?? 0
    let number = to > from && to - from <= 10 ? 0 : limit
    for (let i = from; i < to && number < limit; i++) {
      const digit = text[i] - 0x30
      number = digit >= 0 && digit <= 9 ? 10 * number + digit : limit
    }
    if (number < limit) return number
    if (this.#options.ignoreUnknown && this.#isWhole()) {
      if (!this.#hasUnknown) noticeUnknown(this.#options, this.#reporter.source, Number(textOf(scanner)), limit)
      this.#hasUnknown = true
      return -1
    }
    const name = shortened(Buffer.from(text.subarray(from, to)).toString('utf8'))
    this.#reject(value, `"${name}" is not a feature number from 0 to ${limit - 1}`)
    return 0
  }

  /** Whether the member's name has digits only. */
  #isWhole(): boolean {
    return /^\d{1,10}$/.test(textOf(this.#scanner))
  }

  /** Reads a member whose column has a role. */
  #readRole(table: KeyedRow, role: ColumnRole, bytes: Uint8Array, value: number): number {
    const scanner = this.#scanner
    const isString = bytes[value] === QUOTE
    const end = isString ? scanner.string(bytes, value) : scanner.skip(bytes, value)
    if (end < 0) return end
    const isValid = isString
      ? table.setRole(role, scanner.text, scanner.from, scanner.to)
      : table.setRole(role, bytes, value, end)
    return isValid ? end : scanner.fail(value, table.fault)
  }

  readonly #element = (bytes: Uint8Array, value: number): number => {
    const position = this.#position++
    if (bytes[value] === NULL) return this.#scanner.literal(bytes, value)
    const end = this.#scanner.finite(bytes, value)
    if (end < 0) return end
    if (this.#table === undefined) this.#add(position + this.#constant, this.#scanner.number)
    else this.#table.addElement(position, this.#scanner.number)
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
      end = scanner.literal(bytes, value)
      if (end >= 0 && byte !== NULL) this.#label = this.labels.boolean(byte === TRUE)
    } else {
      end = scanner.finite(bytes, value)
      if (end >= 0) this.#label = this.labels.value(scanner.number)
    }
    if (this.#label !== REFUSED || end < 0) return end
    if (!this.#options.unlabelled) return scanner.fail(value, this.labels.reason)
    this.#label = Number.NaN
    return end
  }

  #isKey(key: Uint8Array): boolean {
    return isText(this.#scanner, key)
  }
}

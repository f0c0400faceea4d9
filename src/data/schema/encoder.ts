/** Writes the features of a table's rows, one field after another: shared by all formats with columns. */
import { importance, type OnNotice } from '../../base/errors.js'
import { DecimalScanner, isFiniteFloat32 } from '../formats/decimals.js'
import { hashWords, murmur3 } from '../formats/hash.js'
import { shortened } from '../formats/labels.js'
import type { OnHashed } from '../options.js'
import { RowBuffer } from '../rows.js'
import type { ColumnRole } from '../types.js'
import { ANY_TEXT, CategoryReader, COMMON_MISSING, MissingValues } from './categories.js'
import { NumberReader } from './numbers.js'
import { type Column, crossHash, type Derived, type Layout } from './schema.js'
import { DAY_CYCLE, DAY_MS, EPOCH_DAYS, MONTH_CYCLE, TimeParts, TimeReader, WEEK_CYCLE, YEARS_10 } from './times.js'

/** Limit of a scaled value, in standard deviations. */
const MAX_DEVIATIONS = 10
/** The length of an interval in standard deviations of numbers that are uniform in it. */
const UNIFORM = Math.sqrt(12)
const NOTHING = new Uint8Array(0)
/** Why a value does not fit a column of numbers. */
const NO_NUMBER = 'is not a number: write a number, or leave the field empty if the value is missing'
const TOO_LARGE = 'exceeds the range of float32: use a smaller unit'

/** Columns of numbers, as `addNumbers` takes them. */
export class NumberColumns {
  readonly features: Int32Array
  readonly shifts: Float64Array
  /** 0 for columns that are not scaled. */
  readonly deviations: Float64Array
  readonly slots: Int32Array

  constructor(
    readonly columns: readonly Column[],
    slots: readonly number[]
  ) {
    const isScaled = ({ mean, deviation }: Column) => mean !== undefined && deviation !== undefined
    this.features = Int32Array.from(columns, ({ feature }) => feature)
    this.shifts = Float64Array.from(columns, column => (isScaled(column) ? column.mean : column.origin) ?? 0)
    this.deviations = Float64Array.from(columns, column => (isScaled(column) ? (column.deviation ?? 0) : 0))
    this.slots = Int32Array.from(slots)
  }
}

interface EncoderOptions {
  readonly constant?: boolean
  readonly na?: readonly string[]
  /** @default that of each column, or a point */
  readonly decimal?: '.' | ','
  /** @default '<input>' */
  readonly source?: string
  /** Columns whose first numbers have marks that may divide thousands. @default not known */
  readonly grouped?: readonly string[]
  /** Called once for each column whose values contradict how they are read. @default none */
  readonly onNotice?: OnNotice
  /** @default none */
  readonly onHashed?: OnHashed
  /** Whether invalid weights are accepted, because nothing is learned. @default false */
  readonly unlabelled?: boolean
  /** Whether identifiers are kept. @default false */
  readonly ids?: boolean
}

export class RowEncoder {
  /** Why the last value was refused. */
  fault = ''
  readonly #constant: number
  readonly #missing: MissingValues
  readonly #missingNumbers: MissingValues
  /** Missing values of columns with further marks. */
  readonly #ownMissing: ReadonlyMap<Column, MissingValues>
  readonly #decimal: '.' | ',' | undefined
  readonly #source: string
  readonly #onNotice: OnNotice | undefined
  readonly #grouped: readonly string[] | undefined
  /** Columns of which a contradiction was reported. */
  readonly #reported = new Set<string>()
  readonly #hashedFrom: number
  readonly #mask: number
  readonly #onHashed: OnHashed | undefined
  readonly #derived: Derived
  /** Hashes, and for `onHashed` texts, of the current row's categories that interact, by slot. */
  readonly #crossed: number[] = []
  readonly #crossedTexts: string[] = []
  readonly #needsWeights: boolean
  readonly #keepsIds: boolean
  readonly #category = new CategoryReader()
  readonly #numbers = new NumberReader()
  readonly #times = new Map<string, TimeReader>()
  readonly #parts = new TimeParts()
  /** The column of the weights. */
  protected readonly weight: Column | undefined
  readonly #scanner = new DecimalScanner()
  #out = new RowBuffer()
  /** End of the current row's numbers, which come first because the scaling applies to them. */
  #entry = 0
  /** The other entries, which follow. */
  #others = 0
  #indices = new Int32Array(64)
  #values = new Float32Array(64)

  constructor(layout: Layout, options: EncoderOptions) {
    const { constant = false, na, decimal, onHashed, unlabelled, ids, source = '<input>', onNotice } = options
    this.#constant = constant ? 1 : 0
    this.#missing = new MissingValues(na)
    this.#missingNumbers = new MissingValues(na, 'number')
    const own = layout.columns.filter(column => column.na !== undefined)
    this.#ownMissing = new Map(
      own.map(column => [column, new MissingValues(na, column.kind === 'number' ? 'number' : 'other', column.na)])
    )
    this.#decimal = decimal
    this.#source = source
    this.#onNotice = onNotice
    this.#grouped = options.grouped
    this.#hashedFrom = layout.hashedFrom + this.#constant
    this.#mask = layout.hashed - 1
    this.#onHashed = onHashed
    this.#derived = layout.derived
    this.#needsWeights = !unlabelled
    this.#keepsIds = ids ?? false
    this.weight = layout.columns.find(({ role }) => role === 'weight')
  }

  /**
   * Starts a row at the end of `out`, which has space for it.
   * @param keepsRoles starts its features again, but keeps weight and identifier @default false
   */
  begin(out: RowBuffer, keepsRoles = false): void {
    this.#out = out
    this.#entry = out.entries
    this.#others = 0
    if (keepsRoles) return
    if (this.weight !== undefined) out.weigh(1)
    if (this.#keepsIds) out.identify(undefined)
  }

  isMissing(bytes: Uint8Array, from: number, to: number): boolean {
    return this.#missing.includes(bytes, from, to)
  }

  /**
   * Adds a field's text, which a byte follows that ends a number.
   * @returns false if the value does not fit the column, with `fault` set
   */
  add(column: Column, bytes: Uint8Array, from: number, to: number): boolean {
    switch (column.kind) {
      case 'number': {
        if (column.date) return this.#addDate(column, bytes, from, to)
        const value = this.#number(column, bytes, from, to)
        if (isFiniteFloat32(value)) this.addNumber(column, value)
        else if (this.#isMissingIn(column, bytes, from, to)) this.addMissing(column)
        else {
          return this.#refuse(column, bytes, from, to, Number.isNaN(value) ? NO_NUMBER : TOO_LARGE)
        }
        return true
      }
      case 'category':
        // A missing value is a category of its own.
        if (this.isMissing(bytes, from, to)) this.#addMissingCategory(column)
        else {
          const value = this.#category
          value.read(bytes, from, to)
          const hash = murmur3(value.text, value.from, value.to, column.seed)
          const feature = this.#addHashed(hash)
          if (column.slot >= 0) this.#crossed[column.slot] = hash
          if (this.#onHashed !== undefined) {
            const text = textOf(value.text, value.from, value.to)
            this.#onHashed(feature, column, text)
            if (column.slot >= 0) this.#crossedTexts[column.slot] = text
          }
        }
        return true
      case 'text':
        if (this.#onHashed === undefined)
          hashWords(bytes, from, to, column.seed, column.bigrams === true, this.#addHashed)
        else this.#addNamedWords(column, bytes, from, to, this.#onHashed)
        return true
      case 'time':
        if (this.#readTime(column, bytes, from, to)) this.#addTime(column, this.#timeReader(column))
        else if (this.#isNoTime(column, bytes, from, to)) this.addMissing(column)
        else return this.#refuse(column, bytes, from, to, 'is not a date such as 2024-02-29 18:30')
        return true
      case 'ignored':
      case 'interaction':
        return true
      default:
        return column.kind satisfies never
    }
  }

  /**
   * Sets the weight or the identifier of the row from the column with that role.
   * @returns false if the value is invalid, with `fault` set
   */
  setRole(role: ColumnRole, bytes: Uint8Array, from: number, to: number): boolean {
    if (role === 'id' && this.#keepsIds) this.#out.identify(textOf(bytes, from, to))
    if (role !== 'weight' || this.weight === undefined) return true
    const weight = this.#number(this.weight, bytes, from, to)
    const isValid = weight >= 0 && isFiniteFloat32(weight)
    if (isValid) this.#out.weigh(weight)
    if (isValid || !this.#needsWeights) return true
    const text = shortened(textOf(bytes, from, to))
    this.fault = `"${text}" in the column of weights "${this.weight?.name}" is not a number of at least 0`
    return false
  }

  /** Adds the numbers of columns, NaN if one is missing. @param first position to which their slots are added */
  addNumbers(
    { columns, features, slots, shifts, deviations }: NumberColumns,
    numbers: Float64Array,
    first: number
  ): void {
    const out = this.#out
    const constant = this.#constant
    const count = features.length
    let entry = this.#entry
    if (entry + count > out.indices.length) out.reserve(1, entry - out.entries + count + 64)
    const { indices, values } = out
    for (let i = 0; i < count; i++) {
      const value = numbers[first + slots[i]] - shifts[i]
      if (Number.isNaN(value)) {
        this.addMissing(columns[i])
        continue
      }
      const deviation = deviations[i]
      indices[entry] = features[i] + constant
      values[entry++] = deviation === 0 ? value : limited(value / deviation)
    }
    this.#entry = entry
  }

  addNumber({ feature, mean, deviation, origin = 0 }: Column, value: number): void {
    const isScaled = mean !== undefined && deviation !== undefined
    this.#push(feature + this.#constant, isScaled ? limited((value - mean) / deviation) : value - origin)
  }

  /** The number in any notation that the bytes are; NaN if they are none. */
  #number(column: Column, bytes: Uint8Array, from: number, to: number): number {
    const { name, decimal = this.#decimal } = column
    if (decimal !== ',') {
      const value = this.#scanner.scan(bytes, from)
      if (this.#scanner.end === to && from < to) return value
    }
    const numbers = this.#numbers
    const value = numbers.read(bytes, from, to, decimal)
    const isOther = decimal === ',' ? numbers.pointIsDecimal : decimal !== 'both' && numbers.commaIsDecimal
    if (isOther && !Number.isNaN(value)) {
      const [mark, usual] = decimal === ',' ? ['point', 'comma'] : ['comma', 'point']
      this.#report(
        name,
        `"${shortened(textOf(bytes, from, to))}" in the column "${name}" has a decimal ${mark} and is read as ${value}, but other numbers are read with a decimal ${usual}: give --decimal if they are read wrongly`
      )
    }
    const isGroup = numbers.ambiguous !== 0 && numbers.fraction === 0 && !Number.isNaN(value)
    if (isGroup && this.#grouped !== undefined && !this.#grouped.includes(name)) {
      this.#report(
        name,
        `"${shortened(textOf(bytes, from, to))}" in the column "${name}" is read as ${value}, but no number of the first rows has a thousands mark: give --decimal if that is wrong`
      )
    }
    return value
  }

  /** Reports what contradicts the first rows, once for each column. */
  #report(name: string, line: string, importanceOf: number = importance.contradiction): void {
    if (this.#reported.has(name)) return
    this.#reported.add(name)
    this.#onNotice?.(`${this.#source}: ${line}`, importanceOf)
  }

  #isMissingIn(column: Column, bytes: Uint8Array, from: number, to: number): boolean {
    const usual = column.kind === 'number' ? this.#missingNumbers : this.#missing
    if (column.na?.includes(ANY_TEXT)) return true
    if (!(this.#ownMissing.get(column) ?? usual).includes(bytes, from, to)) return false
    if (to > from && this.#onNotice !== undefined && !this.#reported.has(column.name)) {
      const text = textOf(bytes, from, to)
      if (!COMMON_MISSING.has(text) && !column.na?.includes(text)) {
        const line = `"${shortened(text)}" in the column "${column.name}" counts as missing, unlike in the first rows`
        this.#report(column.name, line, importance.leftOut)
      }
    }
    return true
  }

  #timeReader({ name, order }: Pick<Column, 'name' | 'order'>): TimeReader {
    let reader = this.#times.get(name)
    if (reader === undefined) {
      reader = new TimeReader(order)
      this.#times.set(name, reader)
    }
    return reader
  }

  #readTime(column: Column, bytes: Uint8Array, from: number, to: number): boolean {
    const reader = this.#timeReader(column)
    if (!reader.read(bytes, from, to)) return false
    const { orders } = reader
    if (column.order !== undefined && orders.length > 0 && !orders.includes(column.order)) {
      this.#report(
        column.name,
        `the date "${shortened(textOf(bytes, from, to))}" of the column "${column.name}" has another order than the others: it is read as it can be`
      )
    }
    return true
  }

  /** Whether a value that is no time counts as missing: a mark, or a date that does not exist, which is reported. */
  #isNoTime(column: Column, bytes: Uint8Array, from: number, to: number): boolean {
    if (this.#isMissingIn(column, bytes, from, to)) return true
    const text = textOf(bytes, from, to)
    if (!/\d/.test(text)) return false
    this.#report(
      column.name,
      `"${shortened(text)}" in the column "${column.name}" is no date, so it counts as missing, like others that are none`
    )
    return true
  }

  /** Adds the position in time, a number, and the parts of the date and of the day. */
  #addTime(column: Column, { local, utc, hasDate, hasClock }: TimeReader): void {
    const { feature, mean, deviation, origin = EPOCH_DAYS } = column
    const first = feature + this.#constant
    const isScaled = mean !== undefined && deviation !== undefined
    const days = utc / DAY_MS
    if (hasDate) this.#push(first, isScaled ? limited((days - mean) / deviation) : (days - origin) / YEARS_10)
    const span = isScaled ? deviation * UNIFORM : Number.POSITIVE_INFINITY
    const parts = this.#parts
    parts.set(local)
    if (hasDate && span >= MONTH_CYCLE) this.#addCircle(first + 1, parts.month)
    if (hasDate && span >= WEEK_CYCLE) this.#addCircle(first + 3, parts.weekday)
    if (hasClock && (span >= DAY_CYCLE || !hasDate)) this.#addCircle(first + 5, parts.hour)
  }

  #addCircle(feature: number, share: number): void {
    this.#addOther(feature, Math.sin(2 * Math.PI * share))
    this.#addOther(feature + 1, Math.cos(2 * Math.PI * share))
  }

  /** Adds what a column has instead of a value: nothing, which is the mean of scaled numbers, and its indicator. */
  addMissing(column: Column): void {
    if (column.indicator >= 0) this.#addOther(column.indicator + this.#constant, 1)
    else if (column.kind === 'category') this.#addMissingCategory(column)
  }

  #addMissingCategory(column: Column): void {
    const hash = murmur3(NOTHING, 0, 0, column.seed)
    const feature = this.#addHashed(hash)
    this.#onHashed?.(feature, column, undefined)
    if (column.slot < 0) return
    this.#crossed[column.slot] = hash
    this.#crossedTexts[column.slot] = 'missing'
  }

  #addNamedWords(column: Column, bytes: Uint8Array, from: number, to: number, onHashed: OnHashed): void {
    let [before, last] = ['', '']
    hashWords(bytes, from, to, column.seed, column.bigrams === true, (hash, word, length, isPair) => {
      if (!isPair) [before, last] = [last, textOf(word, 0, length)]
      onHashed(this.#addHashed(hash), column, isPair ? `${before} ${last}` : last)
    })
  }

  /** Completes the row. */
  end(label: number): void {
    this.finish(label)
  }

  /** The same, of a row to which missing values were added. */
  finish(label: number): void {
    const out = this.#out
    out.numeric[out.size] = this.#entry - out.entries
    const { crosses, slopes } = this.#derived
    for (const { column, a, b } of crosses) {
      const feature = this.#addHashed(crossHash(this.#crossed[a], this.#crossed[b]))
      this.#onHashed?.(feature, column, `${this.#crossedTexts[a]}:${this.#crossedTexts[b]}`)
    }
    if (this.#constant === 1) this.#addOther(0, 1)
    for (let i = 0; i < this.#others; i++) this.#push(this.#indices[i], this.#values[i])
    for (const { column, slot, seed } of slopes) {
      const feature = this.#hashedFrom + (crossHash(seed, this.#crossed[slot]) & this.#mask)
      this.#push(feature, 1)
      this.#onHashed?.(feature, column, this.#crossedTexts[slot])
    }
    out.labels[out.size] = label
    out.entries = this.#entry
    out.offsets[++out.size] = this.#entry
  }

  /** @returns the feature */
  readonly #addHashed = (hash: number): number => {
    const feature = this.#hashedFrom + (hash & this.#mask)
    this.#addOther(feature, 1)
    return feature
  }

  #addDate(column: Column, bytes: Uint8Array, from: number, to: number): boolean {
    if (this.#readTime(column, bytes, from, to)) this.addNumber(column, this.#timeReader(column).utc / DAY_MS)
    else if (this.#isNoTime(column, bytes, from, to)) this.addMissing(column)
    else return this.#refuse(column, bytes, from, to, 'is not a date such as 2024-02-29 18:30')
    return true
  }

  #addOther(index: number, value: number): void {
    if (this.#others === this.#indices.length) this.#growOthers()
    this.#indices[this.#others] = index
    this.#values[this.#others++] = value
  }

  #growOthers(): void {
    const [indices, values] = [this.#indices, this.#values]
    this.#indices = new Int32Array(2 * indices.length)
    this.#values = new Float32Array(2 * values.length)
    this.#indices.set(indices)
    this.#values.set(values)
  }

  /** A field of one byte can have several entries, so the parser's reservation need not suffice. */
  #push(index: number, value: number): void {
    const out = this.#out
    if (this.#entry === out.indices.length) out.reserve(1, this.#entry - out.entries + 64)
    out.indices[this.#entry] = index
    out.values[this.#entry++] = value
  }

  #refuse(column: Column, bytes: Uint8Array, from: number, to: number, why: string): false {
    const text = shortened(Buffer.from(bytes.subarray(from, to)).toString('utf8'))
    this.fault = `"${text}" in the ${column.kind === 'number' ? 'numeric column' : `${column.kind} column`} "${column.name}" ${why}`
    return false
  }
}

/** Limits a scaled value. */
function limited(deviations: number): number {
  return Math.max(-MAX_DEVIATIONS, Math.min(MAX_DEVIATIONS, deviations))
}

function textOf(bytes: Uint8Array, from: number, to: number): string {
  return Buffer.from(bytes.subarray(from, to)).toString('utf8')
}

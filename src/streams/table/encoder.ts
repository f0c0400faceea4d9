/** Writes the features of a table's rows, one field after another: shared by all formats with columns. */
import { DecimalScanner, isFiniteFloat32 } from '../decimals.js'
import { murmur3 } from '../hash.js'
import { shortened } from '../labels.js'
import type { OnHashed } from '../options.js'
import { RowBuffer } from '../rows.js'
import { crossHash } from './derived.js'
import type { Column, Derived, Layout } from './schema.js'
import type { ColumnRole } from './types.js'
import { hashWords, MissingValues, Moments, timeFeatures, timeOf } from './values.js'

/** Limit of a scaled value, in standard deviations. */
const MAX_DEVIATIONS = 10
const DAY_MS = 86_400_000
const COMMA = 0x2c
const POINT = 0x2e
const SPACE = 0x20

export interface EncoderOptions {
  readonly constant?: boolean
  readonly na?: readonly string[]
  /** @default '.' */
  readonly decimal?: '.' | ','
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
  readonly #isDecimalComma: boolean
  readonly #hashedFrom: number
  readonly #mask: number
  readonly #onHashed: OnHashed | undefined
  readonly #derived: Derived
  /** Hashes, and for `onHashed` texts, of the current row's categories that interact, by slot. */
  readonly #crossed: number[] = []
  readonly #crossedTexts: string[] = []
  readonly #needsWeights: boolean
  readonly #keepsIds: boolean
  /** Whether rows must be in the order of their times. */
  readonly #isOrdered: boolean
  /** Whether rows may have times. */
  readonly #isDated: boolean
  readonly #moments = new Moments()
  #lastTime = Number.NEGATIVE_INFINITY
  /** The column of the weights. */
  protected readonly weight: Column | undefined
  readonly #scanner = new DecimalScanner()
  #scratch = new Uint8Array(64)
  #out = new RowBuffer()
  /** End of the current row's numbers, which come first because the scaling applies to them. */
  #entry = 0
  /** The other entries, which follow. */
  #others = 0
  #indices = new Int32Array(64)
  #values = new Float32Array(64)

  constructor(layout: Layout, { constant = false, na, decimal = '.', onHashed, unlabelled, ids }: EncoderOptions) {
    this.#constant = constant ? 1 : 0
    this.#missing = new MissingValues(na)
    this.#isDecimalComma = decimal === ','
    this.#hashedFrom = layout.hashedFrom + this.#constant
    this.#mask = layout.hashed - 1
    this.#onHashed = onHashed
    this.#derived = layout.derived
    this.#isOrdered = layout.derived.lags.length > 0
    this.#needsWeights = !unlabelled
    this.#keepsIds = ids ?? false
    this.#isDated = layout.columns.some(({ role }) => role === 'time')
    this.weight = layout.columns.find(({ role }) => role === 'weight')
  }

  /**
   * Starts a row at the end of `out`, which has space for it.
   * @param keepsRoles starts its features again, but keeps weight, identifier and time @default false
   */
  begin(out: RowBuffer, keepsRoles = false): void {
    this.#out = out
    this.#entry = out.entries
    this.#others = 0
    if (keepsRoles) return
    if (this.weight !== undefined) out.weigh(1)
    if (this.#isDated) out.date(Number.NaN)
    if (this.#keepsIds) out.identify(undefined)
  }

  /** Expects the first row of a file again. */
  restart(): void {
    this.#lastTime = Number.NEGATIVE_INFINITY
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
        const value = this.#isDecimalComma ? this.#commaNumber(bytes, from, to) : this.#scanner.scan(bytes, from)
        const end = this.#isDecimalComma ? from + this.#scanner.end : this.#scanner.end
        if (end === to && from < to && isFiniteFloat32(value)) {
          this.addNumber(column, value)
          return true
        }
        if (this.isMissing(bytes, from, to)) {
          this.addMissing(column)
          return true
        }
        return this.#refuse(column, bytes, from, to, 'is not a finite float32 number')
      }
      case 'category':
        // A missing value is a category of its own.
        if (this.isMissing(bytes, from, to)) this.#addMissingCategory(column)
        else {
          const hash = murmur3(bytes, from, to, column.seed)
          const feature = this.#addHashed(hash)
          if (column.slot >= 0) this.#crossed[column.slot] = hash
          if (this.#onHashed !== undefined) {
            const text = textOf(bytes, from, to)
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
      case 'time': {
        if (this.isMissing(bytes, from, to)) {
          this.addMissing(column)
          return true
        }
        const features = timeFeatures(Buffer.from(bytes.subarray(from, to)).toString('latin1'))
        if (features === undefined)
          return this.#refuse(column, bytes, from, to, 'is not a date such as 2024-02-29 18:30')
        for (const [i, value] of features.entries()) this.#addOther(column.feature + i + this.#constant, value)
        return true
      }
      case 'ignored':
      case 'interaction':
      case 'lag':
        return true
      default:
        return column.kind satisfies never
    }
  }

  /**
   * Sets the weight, identifier or time of the row from the column with that role.
   * @returns false if the value is invalid, with `fault` set
   */
  setRole(role: ColumnRole, bytes: Uint8Array, from: number, to: number): boolean {
    if (role === 'id' && this.#keepsIds) this.#out.identify(textOf(bytes, from, to))
    if (role === 'time') {
      this.#out.date(this.#moments.at(bytes, from, to))
      return !this.#isOrdered || this.#isLater(textOf(bytes, from, to))
    }
    if (role !== 'weight') return true
    const weight = this.#isDecimalComma ? this.#commaNumber(bytes, from, to) : this.#scanner.scan(bytes, from)
    const end = this.#isDecimalComma ? from + this.#scanner.end : this.#scanner.end
    const isValid = end === to && from < to && weight >= 0 && isFiniteFloat32(weight)
    if (isValid) this.#out.weigh(weight)
    if (isValid || !this.#needsWeights) return true
    const text = shortened(textOf(bytes, from, to))
    this.fault = `"${text}" in the column of weights "${this.weight?.name}" is not a number of at least 0`
    return false
  }

  #isLater(text: string): boolean {
    const time = timeOf(text)
    if (time !== undefined && time >= this.#lastTime) {
      this.#lastTime = time
      return true
    }
    this.fault =
      time === undefined
        ? `"${shortened(text)}" is not a time such as 2024-02-29 18:30 or 1709231400, and lags need the order of rows`
        : `the time "${shortened(text)}" is before that of an earlier row, and lags need the order of rows: sort the file`
    return false
  }

  addNumber({ feature, mean, deviation }: Column, value: number): void {
    let scaled = value
    if (mean !== undefined && deviation !== undefined) {
      scaled = Math.max(-MAX_DEVIATIONS, Math.min(MAX_DEVIATIONS, (value - mean) / deviation))
    }
    this.#push(feature + this.#constant, scaled)
  }

  /** Adds what a column has instead of a value: nothing, which is the mean of scaled numbers, and its indicator. */
  addMissing(column: Column): void {
    if (column.indicator >= 0) this.#addOther(column.indicator + this.#constant, 1)
    else if (column.kind === 'category') this.#addMissingCategory(column)
  }

  #addMissingCategory(column: Column): void {
    const hash = murmur3(this.#scratch, 0, 0, column.seed)
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
    const moment = this.#moments.at(bytes, from, to)
    if (!Number.isNaN(moment)) this.addNumber(column, moment / DAY_MS)
    else if (this.isMissing(bytes, from, to)) this.addMissing(column)
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

  #commaNumber(bytes: Uint8Array, from: number, to: number): number {
    if (to - from >= this.#scratch.length) this.#scratch = new Uint8Array(2 * (to - from))
    for (let i = from; i < to; i++)
      this.#scratch[i - from] = bytes[i] === COMMA ? POINT : bytes[i] === POINT ? SPACE : bytes[i]
    this.#scratch[to - from] = SPACE
    return this.#scanner.scan(this.#scratch, 0)
  }

  #refuse(column: Column, bytes: Uint8Array, from: number, to: number, why: string): false {
    const text = shortened(Buffer.from(bytes.subarray(from, to)).toString('utf8'))
    this.fault = `"${text}" in the ${column.kind === 'number' ? 'numeric column' : `${column.kind} column`} "${column.name}" ${why}`
    return false
  }
}

function textOf(bytes: Uint8Array, from: number, to: number): string {
  return Buffer.from(bytes.subarray(from, to)).toString('utf8')
}

/**
 * CSV with a header line (RFC 4180). A column is numeric if its value in the first row is a number or empty, and categorical
 * otherwise or by the option `categorical`. An empty value is missing: the row does not have the feature.
 */
import { type Column, Columns } from './columns.js'
import { DecimalScanner, isFiniteFloat32 } from './decimals.js'
import { HeaderError } from './errors.js'
import type { RowParser, TextDefinition } from './format.js'
import { murmur3 } from './hash.js'
import { LabelReader, REFUSED, shortened } from './labels.js'
import type { ParserOptions } from './options.js'
import { RecordLocator, RecordSplitter } from './records.js'
import type { Reporter } from './reporter.js'
import type { RowBuffer } from './rows.js'

export const csv: TextDefinition = {
  kind: 'text',
  summary: 'CSV with a header line, numeric and categorical columns',
  fileName: /\.csv$/,
  options: [
    'label',
    'ignore',
    'categorical',
    'columns',
    'classNames',
    'classes',
    'hashBits',
    'dimension',
    'unlabelled',
    'scale'
  ],
  isSizedByFirstRow: true,
  createRowParser: (options, reporter) => new CsvParser(options, reporter)
}

class CsvParser implements RowParser {
  readonly labels: LabelReader
  readonly #options: ParserOptions
  readonly #reporter: Reporter
  readonly #locator = new RecordLocator()
  readonly #record = new RecordSplitter()
  readonly #scanner = new DecimalScanner()
  #columns: Columns | undefined
  #headerRead = false
  #isDecided = false
  /** Line of the next record, from 0. */
  #line = 0
  #fault = ''
  /** Categorical features of the current row, which follow its numeric ones. */
  readonly #categories: number[] = []

  constructor(options: ParserOptions, reporter: Reporter) {
    this.#options = options
    this.#reporter = reporter
    this.labels = new LabelReader(options)
  }

  /** Known once the header and the first row are read. */
  get dimension(): number | undefined {
    const columns = this.#columns
    return columns?.decided ? (this.#options.dimension ?? columns.numeric + columns.hashed) : undefined
  }

  /** Known once the header and the first row are read. */
  get columns(): readonly string[] | undefined {
    return this.#columns?.decided ? this.#columns.numericNames : undefined
  }

  /** As given: only categorical columns are hashed. */
  get hashBits(): number | undefined {
    return this.#options.hashBits
  }

  restart(): void {
    this.#headerRead = false
    this.#line = 0
    this.#locator.restart()
  }

  locate(chunk: Uint8Array): { first: number; last: number } {
    return this.#locator.locate(chunk)
  }

  parse(input: Uint8Array, from: number, to: number, out: RowBuffer): void {
    // The search for a closing quote must not read beyond `to`.
    const bytes = input.subarray(0, to)
    const record = this.#record
    for (let start = from; start < to; ) {
      const end = record.split(bytes, start)
      const line = this.#line + 1
      this.#line += record.lines
      const isBlank = record.count === 1 && record.from[0] === record.to[0] && bytes[start] !== 0x22
      if (record.fault !== '') this.#reporter.report(line, record.at - start + 1, record.fault)
      else if (isBlank) this.#fault = ''
      else if (!this.#headerRead) this.#header()
      else {
        const field = this.#row(this.#columns as Columns, out)
        if (field >= 0) this.#reporter.report(line, this.#column(bytes, start, field), this.#fault)
      }
      start = end
    }
  }

  #header(): void {
    const names = Array.from({ length: this.#record.count }, (_, field) => this.#text(field))
    this.#headerRead = true
    if (this.#columns === undefined) {
      this.#columns = new Columns(names, this.#options, this.#reporter.source)
    } else if (this.#columns.names().join('\n') !== names.join('\n')) {
      throw new HeaderError(
        `${this.#reporter.source}: the header differs from the one before: give rows of one file only`
      )
    }
  }

  /** Appends the current record. @returns −1, or the malformed field, with `out` unchanged */
  #row(columns: Columns, out: RowBuffer): number {
    const record = this.#record
    if (record.count !== columns.length) {
      this.#fault = `${record.count} fields, expected ${columns.length} as in the header`
      return 0
    }
    if (!this.#isDecided) this.#decide(columns)
    const constant = this.#options.constant ? 1 : 0
    const first = out.entries
    let entry = first
    let label = Number.NaN
    this.#categories.length = 0
    for (let field = 0; field < record.count; field++) {
      const column = columns.at(field)
      const isEmpty = record.from[field] === record.to[field]
      if (column.kind === 'label') {
        if (!isEmpty || !this.#options.unlabelled) label = this.#label(field, isEmpty)
        if (label === REFUSED) {
          this.#fault = this.labels.reason
          return field
        }
      } else if (isEmpty) {
      } else if (column.kind === 'numeric') {
        const value = this.#number(field, column)
        if (Number.isNaN(value)) return field
        out.indices[entry] = column.feature + constant
        out.values[entry++] = value
      } else if (column.kind === 'categorical') {
        const hash = murmur3(record.text[field], record.from[field], record.to[field], column.feature)
        this.#categories.push(columns.numeric + (hash & (columns.hashed - 1)) + constant)
      }
    }
    out.numeric[out.size] = entry - first
    if (constant === 1) this.#categories.push(0)
    for (const category of this.#categories) {
      out.indices[entry] = category
      out.values[entry++] = 1
    }
    out.labels[out.size] = label
    out.entries = entry
    out.offsets[++out.size] = entry
    return -1
  }

  #label(field: number, isEmpty: boolean): number {
    const { text, from, to } = this.#record
    return isEmpty ? this.labels.refuse('the label is empty') : this.labels.text(text[field], from[field], to[field])
  }

  /** Decides which columns are numeric, by the current record. */
  #decide(columns: Columns): void {
    this.#isDecided = true
    columns.decide(Array.from({ length: this.#record.count }, (_, field) => this.#looksNumeric(field)))
    const needed = columns.numeric + columns.hashed
    const given = this.#options.dimension
    if (given !== undefined && given < needed) {
      throw new HeaderError(
        `${this.#reporter.source}: the columns have ${needed} features, dimension is ${given}: increase it`
      )
    }
  }

  #looksNumeric(field: number): boolean {
    const { text, from, to } = this.#record
    if (from[field] === to[field]) return true
    this.#scanner.scan(text[field], from[field])
    return this.#scanner.end === to[field]
  }

  /** @returns the field's number, or NaN with the fault set */
  #number(field: number, column: Column): number {
    const { text, from, to } = this.#record
    const value = this.#scanner.scan(text[field], from[field])
    if (this.#scanner.end === to[field] && isFiniteFloat32(value)) return value
    this.#fault = `"${shortened(this.#text(field))}" in the numeric column "${column.name}" is not a finite float32 number`
    return Number.NaN
  }

  #text(field: number): string {
    const { text, from, to } = this.#record
    return Buffer.from(text[field].subarray(from[field], to[field])).toString('utf8')
  }

  /** 1-based column of a field in bytes. An unescaped field is a copy, for which the start of the record is reported. */
  #column(bytes: Uint8Array, start: number, field: number): number {
    return this.#record.text[field] === bytes ? this.#record.from[field] - start + 1 : 1
  }
}

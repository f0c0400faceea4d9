/**
 * CSV (RFC 4180) with a header line and any separator. Without a schema, each column is a number, a category, a text or a
 * time by its values: those in the first rows of a file, or in the first row if the parser is used alone.
 */
import { importance } from '../../base/errors.js'
import { HeaderError, type Reporter } from '../errors.js'
import type { ParserOptions } from '../options.js'
import type { RowBuffer } from '../rows.js'
import { inferColumns, plainColumn } from '../schema/columns.js'
import { delimiters } from '../schema/dialect.js'
import { RowEncoder } from '../schema/encoder.js'
import { type Column, columnRoles, isDerived, isFeature, Layout } from '../schema/schema.js'
import type { ColumnSchema } from '../types.js'
import { DecimalScanner, isFiniteFloat32 } from './decimals.js'
import { type Field, type FieldForm, FieldRows, isPlainNumber } from './field-rows.js'
import { type RowParser, TABLE_OPTIONS, type TextDefinition } from './format.js'
import { LabelReader, listed, noLabel, REFUSED } from './labels.js'
import { RecordLocator, RecordSplitter } from './records.js'

export const csv: TextDefinition = {
  kind: 'text',
  summary: 'CSV with a header line: numbers, categories, texts and times',
  fileName: /\.(csv|tsv)$/,
  options: TABLE_OPTIONS,
  isSizedByFirstRow: true,
  dialect: 'sniffed',
  createRowParser: (options, reporter) => new CsvParser(options, reporter)
}

/** Rows of Parquet reach the parser as CSV with a header (`sources/parquet.ts`). Their line is the number of the row. */
export const parquet: TextDefinition = {
  ...csv,
  summary: 'Parquet: numbers, categories, texts and times in flat columns',
  fileName: /\.parquet$/,
  options: csv.options.filter(option => !['delimiter', 'decimal', 'header'].includes(option)),
  dialect: { delimiter: ',', header: true },
  createRowParser: (options, reporter) => new CsvParser(options, reporter, true)
}

const NEWLINE = 0x0a
const RETURN = 0x0d
const SPACE = 0x20
const QUOTE = 0x22
/** Lines of a record from which they are compared with rows, and from which they are reported in any case. */
const MANY_LINES = 3
const VERY_MANY_LINES = 200

class CsvParser implements RowParser {
  readonly labels: LabelReader
  readonly #options: ParserOptions
  readonly #reporter: Reporter
  readonly #delimiter: number
  readonly #locator: RecordLocator
  readonly #countsRows: boolean
  readonly #record: RecordSplitter
  /** Names of the file's columns, once the header is read. */
  #names: readonly string[] | undefined
  #headerRead = false
  #schema: readonly ColumnSchema[] | undefined
  /** Known once the header and, without a schema, the first row are read. */
  #layout: Layout | undefined
  #encoder: RowEncoder | undefined
  #fields: readonly Field[] = []
  /** The fields of a row in the order of the schema, so that sums have the same bits; undefined if the file has this order. */
  #order: readonly number[] | undefined
  /** Columns of features that the file lacks. */
  #absent: readonly Column[] = []
  /** Whether most rows can be read in one pass. */
  #isPlain = false
  readonly #rows = new FieldRows({
    startsRows: () => this.#mayUseKernel && this.#headerRead,
    formOf: (bytes, start) => this.#form(bytes, start),
    row: (bytes, start, out) => this.#anyRow(bytes, start, out),
    parsed: () => {
      this.line++
    }
  })
  #mayUseKernel = false
  readonly #scanner = new DecimalScanner()
  /** Line of the next record, from 0. */
  line = 0
  #fault = ''
  #hasNoticedLines = false

  /** @param countsRows whether rows are counted instead of lines: neither the header nor newlines in fields count */
  constructor(options: ParserOptions, reporter: Reporter, countsRows = false) {
    this.#options = options
    this.#countsRows = countsRows
    this.#reporter = reporter
    this.labels = new LabelReader(options)
    this.#delimiter = delimiters[options.delimiter ?? ',']
    this.#locator = new RecordLocator(this.#delimiter)
    this.#record = new RecordSplitter(this.#delimiter)
    this.#schema = options.schema
    if (options.schema !== undefined) this.#layout = this.#checkedLayout(options.schema)
  }

  get dimension(): number | undefined {
    return this.#layout && (this.#options.dimension ?? this.#layout.dimension)
  }

  get schema(): readonly ColumnSchema[] | undefined {
    return this.#schema
  }

  /** The given value: only categories and texts are hashed. */
  get hashBits(): number | undefined {
    return this.#options.hashBits
  }

  restart(): void {
    this.#headerRead = false
    this.line = 0
    this.#locator.restart()
  }

  locate(chunk: Uint8Array): { first: number; last: number } {
    return this.#locator.locate(chunk)
  }

  parse(input: Uint8Array, from: number, to: number, out: RowBuffer): void {
    // The search for a closing quote must not read beyond `to`.
    this.#rows.parse(input.subarray(0, to), from, to, out)
  }

  /** Parses the row at `start`. @returns its end */
  #anyRow(bytes: Uint8Array, start: number, out: RowBuffer): number {
    const plain = this.#isPlain && this.#headerRead ? this.#plainRow(bytes, start, out) : -1
    if (plain > 0) {
      this.line++
      return plain
    }
    const record = this.#record
    const end = record.split(bytes, start)
    const line = this.line + 1
    this.line += this.#countsRows ? Number(this.#headerRead) : record.lines
    const isBlank = record.count === 1 && record.from[0] === record.to[0] && bytes[start] !== 0x22
    // The last row of a file that grows may be cut in a quoted field.
    if (record.isUnclosed && record.lines > MANY_LINES && !this.#reporter.isMuted) {
      const reason = `${record.fault}, so the ${record.lines - 1} lines behind it are no rows: close the quote, or double it inside a quoted field`
      this.#reporter.fail(line, record.at - start + 1, reason)
    }
    if (record.lines > MANY_LINES) this.#noticeLines(bytes, start, end, line)
    if (record.fault !== '') this.#reporter.report(line, record.at - start + 1, record.fault)
    else if (!isBlank && (this.#headerRead || this.#isRow())) {
      const field = this.#row(out)
      if (field >= 0) this.#reporter.report(line, this.#column(bytes, start, field), this.#fault)
    }
    return end
  }

  #form(bytes: Uint8Array, start: number): FieldForm | undefined {
    // Blank lines are no rows with an empty field.
    if (this.#fields.length === 1) return undefined
    const delimiter = Uint8Array.of(this.#delimiter)
    const end = bytes.indexOf(NEWLINE, start)
    return {
      form: 'csv',
      delimiter: this.#delimiter,
      fields: this.#fields.map((field, i) => {
        const before = i === 0 ? new Uint8Array(0) : delimiter
        return { field, before, isNumber: isPlainNumber(field) }
      }),
      after: bytes[end - 1] === RETURN ? Uint8Array.of(RETURN, NEWLINE) : Uint8Array.of(NEWLINE),
      order: this.#order,
      absent: this.#absent,
      encoder: this.#encoder as RowEncoder,
      labels: this.labels
    }
  }

  /** Reports once that a quoted field has very many lines, or that its lines look like rows. */
  #noticeLines(bytes: Uint8Array, start: number, end: number, line: number): void {
    const { lines } = this.#record
    if (this.#hasNoticedLines || this.#countsRows) return
    const inner = Buffer.from(bytes.subarray(start, end)).toString('latin1').split('\n').slice(1, -2)
    const delimiter = String.fromCharCode(this.#delimiter)
    const fields = this.#names?.length ?? 0
    const rows = inner.filter(text => fields > 1 && text.split(delimiter).length === fields).length
    const areRows = rows > 0.8 * inner.length
    if (!areRows && lines <= VERY_MANY_LINES) return
    this.#hasNoticedLines = true
    this.#options.onNotice?.(
      `${this.#reporter.source}:${line}: a quoted field has ${lines - 1} line breaks${areRows ? ', and its lines look like rows' : ''}: check for a quote that is not closed`,
      importance.contradiction
    )
  }

  /** Reads the current record as the header, if there is one. @returns whether it is a row instead */
  #isRow(): boolean {
    const { header = true, columns } = this.#options
    this.#headerRead = true
    const { count } = this.#record
    const names = Array.from({ length: count }, (_, i) => (header ? this.#text(i) : (columns?.[i] ?? String(i + 1))))
    if (this.#names === undefined) this.#setNames(names)
    else if (header && this.#names.join('\n') !== names.join('\n')) {
      throw new HeaderError(
        `${this.#reporter.source}: the header differs from the one before: give rows of one file only`
      )
    }
    return !header
  }

  #setNames(names: readonly string[]): void {
    const { label = 'label', unlabelled = false, categorical = [], ignore = [], columns = [], header } = this.#options
    const roles = columnRoles.flatMap(role => this.#options[role] ?? [])
    const known = new Set(names)
    const what = `${this.#reporter.source}: the ${header === false ? 'columns' : 'header'} (${listed(names, 20)})`
    if (known.size < names.length) {
      const [twice] = names.filter((name, i) => names.indexOf(name) < i)
      throw new HeaderError(`${what} has a duplicate column "${twice}": give each column its own name`)
    }
    if (!known.has(label) && !unlabelled) {
      throw new HeaderError(`${what} ${noLabel(label, names)}`)
    }
    const hinted = this.#schema === undefined ? [...categorical, ...ignore, ...columns, ...roles] : []
    const unknown = hinted.find(name => !known.has(name))
    if (unknown !== undefined) throw new HeaderError(`${what} has no column "${unknown}": check its spelling`)
    const used = this.#schema
      // Predictions need no weights.
      ?.filter(column => (isFeature(column) && !isDerived(column)) || (column.role === 'weight' && !unlabelled))
      .map(({ name }) => name)
    const missing = used?.filter(name => !known.has(name))
    if (missing !== undefined && missing.length > 0) {
      if (!this.#options.lacksColumns)
        throw new HeaderError(
          `${what} has no column "${missing[0]}", which the model needs: give a file with the columns ${listed(used ?? [], 20)}`
        )
      const [columns, them] =
        missing.length === 1 ? ['the column', 'it counts'] : [`${missing.length} columns`, 'they count']
      this.#options.onNotice?.(
        `${this.#reporter.source} lacks ${columns} ${listed(missing)} of the model, so ${them} as missing`,
        importance.leftOut
      )
    }
    this.#names = names
    if (this.#schema !== undefined) this.#setFields(names, this.#schema)
    const absent = new Set(missing)
    this.#absent = this.#layout?.fields.filter(({ name }) => absent.has(name)) ?? []
  }

  #setFields(names: readonly string[], schema: readonly ColumnSchema[]): void {
    this.#schema = schema
    const layout = this.#layout ?? this.#checkedLayout(schema)
    this.#layout = layout
    this.#encoder = new RowEncoder(layout, this.#options)
    const label = this.#options.label ?? 'label'
    this.#fields = names.map(name => {
      if (name === label) return 'label'
      const column = layout.column(name)
      return column?.role ?? (column?.kind === 'ignored' ? 'ignored' : (column ?? 'ignored'))
    })
    // A row may be read twice, which must have no effect on texts that are counted or named.
    const { onLabel, onHashed, decimal = '.' } = this.#options
    const isCounted = onLabel !== undefined || onHashed !== undefined
    this.#order = orderOf(names, layout)
    const isOrdered = this.#order === undefined
    this.#mayUseKernel = decimal === '.' && !isCounted && !layout.columns.some(({ date }) => date)
    this.#isPlain = this.#mayUseKernel && isOrdered
    const unknown = names.filter(name => name !== label && layout.column(name) === undefined)
    if (unknown.length > 0) {
      const [columns, them] = unknown.length === 1 ? ['the column', 'it is'] : [`${unknown.length} columns`, 'they are']
      this.#options.onNotice?.(
        `${this.#reporter.source}: the model does not know ${columns} ${listed(unknown)}, so ${them} ignored`,
        importance.leftOut
      )
    }
  }

  #checkedLayout(schema: readonly ColumnSchema[]): Layout {
    const layout = new Layout(schema, this.#options.hashBits)
    const given = this.#options.dimension
    if (given !== undefined && given < layout.dimension) {
      throw new HeaderError(
        `${this.#reporter.source}: the columns have ${layout.dimension} features, dimension is ${given}: increase it`
      )
    }
    return layout
  }

  /** Appends the current record. @returns −1, or the malformed field, with `out` unchanged */
  #row(out: RowBuffer): number {
    const { count, text, from, to } = this.#record
    const names = this.#names as readonly string[]
    if (count !== names.length) {
      this.#fault = `${count} fields, expected ${names.length} as in the ${this.#options.header === false ? 'first row' : 'header'}`
      return 0
    }
    this.#encoder ?? this.#infer(names)
    const encoder = this.#encoder as RowEncoder
    let label = Number.NaN
    encoder.begin(out)
    const order = this.#order
    for (let k = 0; k < count; k++) {
      const i = order === undefined ? k : order[k]
      const field = this.#fields[i]
      if (field === 'ignored') continue
      if (field === 'label') {
        label = this.labels.text(text[i], from[i], to[i])
        if (label === REFUSED && this.#options.unlabelled) label = Number.NaN
        if (label === REFUSED) {
          this.#fault = this.labels.reason
          return i
        }
      } else if (typeof field === 'string') {
        if (encoder.setRole(field, text[i], from[i], to[i])) continue
        this.#fault = encoder.fault
        return i
      } else if (!encoder.add(field, text[i], from[i], to[i])) {
        this.#fault = encoder.fault
        return i
      }
    }
    for (const column of this.#absent) encoder.addMissing(column)
    encoder.end(label)
    return -1
  }

  /**
   * Appends the row at `start` in one pass, if none of its fields is quoted, padded, malformed or missing: `#row` takes the others.
   * @returns the position after its newline, −1 if it is another row
   */
  #plainRow(bytes: Uint8Array, start: number, out: RowBuffer): number {
    const encoder = this.#encoder as RowEncoder
    const fields = this.#fields
    const scanner = this.#scanner
    const delimiter = this.#delimiter
    const last = fields.length - 1
    let label = Number.NaN
    let position = start
    encoder.begin(out)
    for (let i = 0; i <= last; i++) {
      const field = fields[i]
      const first = position
      if (isPlainNumber(field)) {
        const value = scanner.scan(bytes, position)
        position = scanner.end
        if (position === first || !isFiniteFloat32(value)) return -1
        encoder.addNumber(field, value)
      } else {
        if (bytes[position] <= SPACE || bytes[position] === QUOTE) return -1
        while (bytes[position] !== delimiter && bytes[position] > RETURN) position++
        if (bytes[position - 1] === SPACE) return -1
        if (field === 'label') {
          label = this.labels.text(bytes, first, position)
          if (label === REFUSED) return -1
        } else if (typeof field !== 'string') {
          if (!encoder.add(field, bytes, first, position)) return -1
        } else if (field !== 'ignored' && !encoder.setRole(field, bytes, first, position)) return -1
      }
      if (i < last && bytes[position++] !== delimiter) return -1
    }
    if (bytes[position] === RETURN) position++
    if (bytes[position] !== NEWLINE) return -1
    for (const column of this.#absent) encoder.addMissing(column)
    encoder.end(label)
    return position + 1
  }

  /** Infers the columns from the current record alone. */
  #infer(names: readonly string[]): void {
    const { label = 'label' } = this.#options
    const features = names.flatMap((name, index) => (name === label ? [] : [index]))
    const values = features.map(index => [this.#text(index)])
    const schema = inferColumns(
      features.map(index => names[index]),
      values,
      this.#options.header === false ? { ...this.#options, columns: undefined } : this.#options
    )
    this.#setFields(names, schema.map(plainColumn))
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

/** The positions of fields in the order of the schema, those that are no columns first; undefined if they have this order. */
function orderOf(names: readonly string[], { columns }: Layout): readonly number[] | undefined {
  const places = new Map(columns.map(({ name }, place) => [name, place]))
  const order = names.map((_, i) => i).sort((a, b) => (places.get(names[a]) ?? -1) - (places.get(names[b]) ?? -1))
  const known = names.flatMap(name => places.get(name) ?? [])
  return known.every((place, i) => i === 0 || known[i - 1] < place) ? undefined : order
}

/** The dialect of a CSV file: its separator, its decimal mark, and whether it has a header. */
import { HeaderError } from '../errors.js'
import { listed } from '../formats/labels.js'
import { RecordLocator, RecordReader } from '../formats/records.js'
import type { ColumnSchema, Delimiter, Dialect } from '../types.js'
import { MissingValues } from './categories.js'
import { numberOf } from './numbers.js'

/** The byte of each separator. */
export const delimiters: Readonly<Record<Delimiter, number>> = { ',': 0x2c, ';': 0x3b, '\t': 0x09, '|': 0x7c }

/** Words for the separators. */
export const delimiterNames: Readonly<Record<string, Delimiter | undefined>> = {
  comma: ',',
  semicolon: ';',
  tab: '\t',
  pipe: '|'
}

const SNIFFED_ROWS = 100

/** The records of complete rows, at most `limit`. Malformed records are left out. */
export function recordsOf(bytes: Uint8Array, delimiter: Delimiter, limit: number): readonly (readonly string[])[] {
  const code = delimiters[delimiter]
  const reader = new RecordReader(bytes.subarray(0, new RecordLocator(code).locate(bytes).last), code)
  const records: (readonly string[])[] = []
  while (records.length < limit) {
    const record = reader.next()
    if (record === undefined) break
    if (record.fault === '') records.push(record.fields)
  }
  return records
}

/** What the first rows determine of a dialect. Marks of numbers are those of columns. */
export type SniffedDialect = Required<Pick<Dialect, 'delimiter' | 'header'>>

/** What is known of a file, which its header must name. */
interface HeaderHints extends Dialect {
  readonly na?: readonly string[]
  readonly label?: string
  readonly schema?: readonly ColumnSchema[]
}

/**
 * Determines what the options leave open.
 * @param bytes the start of the file, without a byte order mark
 * @throws HeaderError if the first line must be a row, and `header` is not given
 */
export function sniffDialect(
  bytes: Uint8Array,
  { delimiter, header, na, label = 'label', schema }: HeaderHints,
  source: string
): SniffedDialect {
  const found = delimiter ?? sniffDelimiter(bytes)
  const records = recordsOf(bytes, found, SNIFFED_ROWS)
  const [first = []] = records
  const isNamed = first.includes(label) || (schema?.length ? schema.every(({ name }) => first.includes(name)) : false)
  if (header === undefined && records.length > 1 && !isNamed) refuseRowAsHeader(records, na, source)
  return { delimiter: found, header: header ?? true }
}

/** The separator for which most of the first records have the same number of fields, above one. */
function sniffDelimiter(bytes: Uint8Array): Delimiter {
  let best: Delimiter = ','
  let bestScore = 0
  for (const delimiter of Object.keys(delimiters) as Delimiter[]) {
    const counts = recordsOf(bytes, delimiter, SNIFFED_ROWS).map(record => record.length)
    const [first = 1] = counts
    const share = counts.filter(count => count === first).length / counts.length
    // Consistency counts more than the number of fields.
    const score = first > 1 ? share * share * Math.log2(1 + first) : 0
    if (score > bestScore) {
      best = delimiter
      bestScore = score
    }
  }
  return best
}

/** A header names its columns, so it has no number above a column of numbers, unless it numbers the columns. */
function refuseRowAsHeader(
  records: readonly (readonly string[])[],
  na: readonly string[] | undefined,
  source: string
): void {
  const [first, ...rows] = records
  const missing = new MissingValues(na, 'number')
  const isRow = first.some((name, column) => {
    if (numberOf(name) === undefined) return false
    const values = rows.map(row => row[column] ?? '').filter(value => !missing.has(value))
    return values.length > 0 && values.every(value => numberOf(value) !== undefined)
  })
  if (!isRow || numbersColumns(first)) return
  throw new HeaderError(
    `${source}: the first line is a row, not the names of the columns (${listed(first, 5)}): add a header line, or give --no-header (header: false), with the label's column by its number from 1; if they are the names, give --header`
  )
}

/** Whether the numbers among the names count the columns, as pandas names columns without names. */
function numbersColumns(names: readonly string[]): boolean {
  const numbers = names.filter(name => /^\d+$/.test(name)).map(Number)
  return numbers.length > 1 && numbers[0] <= 1 && numbers.every((number, index) => number === numbers[0] + index)
}

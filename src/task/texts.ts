/** Labelled texts in CSV, Parquet and JSON lines, for networks that read text. */
import { OptionError } from '../learner/index.js'
import {
  delimiters,
  HeaderError,
  inferColumns,
  inputKind,
  listed,
  noLabel,
  RecordReader,
  readSource,
  type StreamOptions,
  sniffDialect
} from '../streams/index.js'

export interface LabelledText {
  /** Of the columns in their order; empty where the row has none. */
  readonly texts: readonly string[]
  /** Undefined if the row has none. */
  readonly label: string | undefined
  /** 1-based. */
  readonly line: number
}

export interface Texts {
  readonly rows: readonly LabelledText[]
  /** Column or key of the label. */
  readonly label: string
  /** Columns or keys of the text. */
  readonly columns: readonly string[]
}

const textFileFormats = ['csv', 'parquet', 'jsonl'] as const
export type TextFileFormat = (typeof textFileFormats)[number]

/** What is known of the columns before the file is read. */
export type TextHints = Pick<StreamOptions, 'label' | 'delimiter' | 'header' | 'ignore' | 'na'> & {
  /** @default those that look like text */
  readonly columns?: readonly string[]
}

/** A row as values by name. */
interface NamedRow {
  readonly values: Readonly<Record<string, unknown>>
  readonly line: number
}

/**
 * @param source the file, for messages
 * @param needsLabels whether there must be a column of labels @default false
 * @throws OptionError for a malformed row, or columns that cannot be found; HeaderError
 */
export function readTexts(
  content: string,
  source: string,
  format: TextFileFormat,
  hints: TextHints,
  needsLabels = false
): Texts {
  // Parquet is read as CSV.
  const dialect = format === 'parquet' ? ({ delimiter: ',', header: true } as const) : {}
  const rows = format === 'jsonl' ? jsonRows(content, source) : csvRows(content, source, { ...hints, ...dialect })
  const label = hints.label ?? 'label'
  const names = [...new Set(rows.flatMap(({ values }) => Object.keys(values)))]
  if (needsLabels && rows.length > 0 && !names.includes(label)) {
    throw new HeaderError(`${source}: the header (${listed(names, 20)}) ${noLabel(label, names)}`)
  }
  const columns = hints.columns ?? textColumns(rows, source, label, hints)
  return { rows: rows.map(row => labelledText(row, label, columns)), label, columns }
}

function labelledText({ values, line }: NamedRow, label: string, columns: readonly string[]): LabelledText {
  const texts = columns.map(name => values[name] ?? '').map(String)
  const given = values[label]
  return {
    texts,
    label: given === undefined || given === null || given === '' ? undefined : String(given),
    line
  }
}

/** The columns as one text. */
export function joinedText({ texts }: LabelledText): string {
  return texts.filter(text => text !== '').join(' ')
}

function textColumns(rows: readonly NamedRow[], source: string, label: string, hints: TextHints): readonly string[] {
  const names = Object.keys(rows[0]?.values ?? {}).filter(name => name !== label && !hints.ignore?.includes(name))
  if (names.includes('text')) return ['text']
  const columns = inferColumns(
    names,
    names.map(name => rows.map(({ values }) => String(values[name] ?? ''))),
    { na: hints.na }
  )
  const texts = columns.filter(({ kind }) => kind === 'text').map(({ name }) => name)
  if (texts.length > 0) return names.filter(name => texts.includes(name))
  const others = columns.filter(({ kind }) => kind === 'category' || kind === 'ignored').map(({ name }) => name)
  // Different short texts look like identifiers.
  if (others.length === 1) return others
  throw new OptionError(
    `${source}: none of ${listed(names)} is a text: the model reads the column "text", or columns of several words`
  )
}

function csvRows(content: string, source: string, hints: TextHints): readonly NamedRow[] {
  const bytes = Buffer.from(content.endsWith('\n') ? content : `${content}\n`)
  const { delimiter, header } = sniffDialect(bytes, hints, source)
  const records = new RecordReader(bytes, delimiters[delimiter])
  const names = header ? records.next()?.fields : undefined
  const rows: NamedRow[] = []
  for (let record = records.next(); record !== undefined; record = records.next()) {
    const { fields, line, fault } = record
    const expected = names?.length ?? (rows.length === 0 ? fields.length : Object.keys(rows[0].values).length)
    if (fault !== '') throw new OptionError(`${source}:${line}: ${fault}`)
    if (fields.length !== expected) {
      throw new OptionError(`${source}:${line}: ${fields.length} fields, expected ${expected} as in the first line`)
    }
    const values = Object.fromEntries(fields.map((field, index) => [names?.[index] ?? String(index + 1), field]))
    rows.push({ values, line })
  }
  return rows
}

function jsonRows(content: string, source: string): readonly NamedRow[] {
  return content.split('\n').flatMap((text, index) => {
    if (text.trim() === '') return []
    const values = parsed(text)
    if (values !== undefined) return [{ values, line: index + 1 }]
    throw new OptionError(`${source}:${index + 1}: expected a line such as {"label": "yes", "text": "some words"}`)
  })
}

function parsed(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value = JSON.parse(line) as unknown
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

/** The format of labelled texts; undefined for plain text. */
export function textFormatOf({ data, format }: Pick<StreamOptions, 'data' | 'format'>): TextFileFormat | undefined {
  const known = (kind: unknown): kind is TextFileFormat => textFileFormats.includes(kind as TextFileFormat)
  const kind = known(format) ? format : inputKind(data, undefined)
  return known(kind) ? kind : undefined
}

/** The whole of an input. @throws MissingInputError, UnreadableInputError, CorruptInputError */
export async function readText(path: string, encoding?: string): Promise<string> {
  const parts: Uint8Array[] = []
  for await (const part of readSource(path, { encoding })) parts.push(part.slice())
  return Buffer.concat(parts)
    .toString('utf8')
    .replace(/^\ufeff/, '')
}

/** The texts of an input, one by one: of labelled rows, or the lines of plain text with their newlines. */
export function textsOf(content: string, texts: Texts | undefined): readonly string[] {
  return texts === undefined ? (content.match(/[^\n]*\n|[^\n]+/g) ?? []) : texts.rows.map(joinedText)
}

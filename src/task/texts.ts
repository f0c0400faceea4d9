/**
 * Labelled texts in CSV, Parquet and JSON lines, for networks that read text, and the tokenizers of text tasks, from a file or
 * trained from the task's texts.
 */

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
} from '../data/index.js'
import { OptionError } from '../learning/index.js'
import type { TextSpec } from '../nn/spec/network-spec.js'
import type { TokenizerKind } from '../nn/tokenizers/subwords.js'
import { noData } from './stream.js'

export interface LabelledText {
  /** Texts of the columns in their order; empty where the row has none. */
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
type TextFileFormat = (typeof textFileFormats)[number]

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

/** Tokenizers of text tasks: from a file, or trained from the task's texts. */
export const tokenizerKinds: readonly TokenizerKind[] = ['wordpiece', 'bpe']

/**
 * How text becomes tokens.
 * @param tokenizer a `tokenizer.json`, or `wordpiece:SIZE` or `bpe:SIZE` to train one @default one token per character
 * @throws ModelError, OptionError; errors of the file
 */
export async function tokenizationOf(
  tokenizer: string | undefined,
  texts: readonly string[]
): Promise<Pick<TextSpec, 'alphabet' | 'pieces'>> {
  const { alphabetOf, parseTokenizer, trainTokenizer } = await import('../l2l/index.js')
  if (tokenizer === undefined) return { alphabet: alphabetOf(texts.join('')) }
  const [, kind, size] = /^([a-z]+):(\d+)$/.exec(tokenizer) ?? []
  if (kind !== undefined) return { pieces: JSON.stringify(trainTokenizer(texts, kindOf(kind), Number(size))) }
  const pieces = await readText(tokenizer)
  parseTokenizer(pieces, tokenizer)
  return { pieces }
}

function kindOf(kind: string): TokenizerKind {
  if (tokenizerKinds.includes(kind as TokenizerKind)) return kind as TokenizerKind
  throw new OptionError(
    `unknown tokenizer "${kind}": give a tokenizer.json, or ${tokenizerKinds.join(':SIZE or ')}:SIZE`
  )
}

interface TrainedTokenizer {
  /** The contents of a `tokenizer.json`. */
  readonly json: string
  /** Number of tokens. */
  readonly vocabulary: number
  /** Texts, or lines of plain text. */
  readonly texts: number
  /** Tokens per character of the texts. */
  readonly tokensPerCharacter: number
}

/**
 * Trains a tokenizer from the texts of a file: CSV, Parquet, JSON lines or plain text.
 * @throws ModelError, OptionError; errors of the file
 */
export async function tokenizerFrom(
  options: TextHints & Pick<StreamOptions, 'format' | 'encoding'> & { readonly data?: string },
  kind: TokenizerKind,
  size: number
): Promise<TrainedTokenizer> {
  const { data } = options
  if (data === undefined) throw noData()
  const { createTokenizer, trainTokenizer } = await import('../l2l/index.js')
  const content = await readText(data, options.encoding)
  const format = textFormatOf({ ...options, data })
  const texts = textsOf(content, format && readTexts(content, data, format, options))
  if (texts.length === 0) throw new OptionError(`${data}: there are no texts: check the file`)
  const json = JSON.stringify(trainTokenizer(texts, kind, size))
  const tokenizer = createTokenizer({ length: 1, pieces: json })
  const sum = (lengths: (text: string) => number) => texts.reduce((total, text) => total + lengths(text), 0)
  const tokensPerCharacter = sum(text => tokenizer.encode(text).length) / sum(text => text.length)
  return { json, vocabulary: tokenizer.vocabulary, texts: texts.length, tokensPerCharacter }
}

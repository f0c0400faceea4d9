/**
 * Text for networks: a file becomes rows of tokens. A model that predicts the next token reads any text; a classifier reads CSV
 * or JSON lines with a label. Tokenization is part of the network: it is stored with it, and peers must agree on it.
 */
import { OptionError } from '../learner/index.js'
import type { ModelSpec } from '../nn/spec/model-spec.js'
import type { NetworkSpec, Target, TextSpec } from '../nn/spec/network-spec.js'
import { masksPadding, readsPairs } from '../nn/spec/sample.js'
import type { TokenSample } from '../nn/types.js'
import { type Rows, rowsOfTokens, type StreamOptions, type TokenRows } from '../streams/index.js'
import type { TaskOptions } from './options.js'
import { noData, type ReadOptions } from './stream.js'
import {
  joinedText,
  type LabelledText,
  readText,
  readTexts,
  type TextHints,
  type Texts,
  textFormatOf,
  textsOf
} from './texts.js'
import { tokenizationOf } from './tokenizer.js'

const DEFAULT_LENGTH = 64

export interface TextTask {
  readonly network: NetworkSpec
  readonly tokens: TokenRows
}

/**
 * The rows of a text file and the network that reads them.
 * @param layers of a model that reads text
 * @throws OptionError, ModelError, HeaderError
 */
export async function textTask(options: TaskOptions, layers: ModelSpec): Promise<TextTask> {
  const { length = DEFAULT_LENGTH, tokenizer } = options
  const given: StreamOptions | undefined = typeof options.data === 'string' ? { data: options.data } : options.data
  if (given === undefined) throw noData()
  const content = await readText(given.data)
  const format = textFormatOf(given)
  const hints = { ...given, columns: given.header === false ? undefined : given.columns }
  const texts = format && readTexts(content, given.data, format, hints)
  const tokenization = { length, ...(await tokenizationOf(tokenizer, textsOf(content, texts))) }
  const labelled = texts && {
    columns: texts.columns,
    label: texts.label,
    ...(readsPairs(layers) && texts.columns.length === 2 && { isPair: true }),
    ...(options.target !== 'number' && { classNames: options.classNames ?? namesOf(texts) })
  }
  const text: TextSpec = { ...tokenization, ...labelled }
  const sample = await sampleOf(text, layers)
  const tokens = texts ? await labelledTokens(text, texts.rows, given.data, true) : await nextTokens(text, content)
  return { network: { layers, sample, target: targetOf(text), text }, tokens }
}

async function sampleOf(text: TextSpec, layers: ModelSpec): Promise<TokenSample> {
  const { createTokenizer } = await import('../l2l/index.js')
  const { vocabulary, padding, separator } = createTokenizer(text)
  return {
    kind: 'tokens',
    shape: [text.length],
    vocabulary,
    ...(masksPadding(layers) && { padding }),
    ...(text.isPair && { separator })
  }
}

function targetOf({ label, classNames }: TextSpec): Target {
  if (label === undefined) return { kind: 'next-token' }
  return classNames === undefined ? { kind: 'number' } : { kind: 'class', classes: classNames.length }
}

/**
 * Further rows for a network that exists; undefined if it does not read text.
 * @param needsLabels otherwise the label of a row without one is NaN
 * @throws OptionError, HeaderError
 */
export async function moreText(
  { text, target }: NetworkSpec,
  options: ReadOptions,
  needsLabels: boolean
): Promise<TokenRows | undefined> {
  if (text === undefined) return undefined
  const { data } = options
  if (data === undefined) throw noData()
  const content = await readText(data)
  if (target.kind === 'next-token') return nextTokens(text, content)
  const format = textFormatOf({ ...options, data }) ?? 'jsonl'
  return labelledTokens(text, readTexts(content, data, format, knownColumns(text, options)).rows, data, needsLabels)
}

/**
 * The rows of a request: JSON lines of objects with the columns of the text.
 * @param needsLabels otherwise the label of a row without one is NaN
 * @throws OptionError for a malformed line
 */
export async function requestedText(text: TextSpec, body: Uint8Array, needsLabels: boolean): Promise<Rows> {
  const content = Buffer.from(body).toString('utf8')
  const { rows } = readTexts(content, 'request', 'jsonl', knownColumns(text, {}))
  return rowsOfTokens(await labelledTokens(text, rows, 'request', needsLabels))
}

/** A network that was trained before the columns were stored reads the key `text`. */
function knownColumns({ columns = ['text'], label }: TextSpec, options: Partial<TextHints>): TextHints {
  return { ...options, columns, label: options.label ?? label }
}

async function nextTokens(text: TextSpec, content: string): Promise<TokenRows> {
  const { nextTokenRows, createTokenizer } = await import('../l2l/index.js')
  const rows = nextTokenRows(content, createTokenizer(text), text.length)
  return { width: text.length + 1, values: joined(rows, text.length + 1) }
}

async function labelledTokens(
  text: TextSpec,
  rows: readonly LabelledText[],
  source: string,
  needsLabels: boolean
): Promise<TokenRows> {
  const { createTokenizer, textRow } = await import('../l2l/index.js')
  const tokenizer = createTokenizer(text)
  const { length, classNames, isPair = false } = text
  const labels = Float32Array.from(rows, ({ label, line }) => {
    const number = label === undefined ? undefined : numberOf(label, classNames)
    if (number !== undefined) return number
    if (!needsLabels) return Number.NaN
    const what = label === undefined ? 'the label is missing' : `unknown label ${label}`
    throw new OptionError(`${source}:${line}: ${what}; expected ${classNames?.join(', ') ?? 'a number'}`)
  })
  const encoded = rows.map(row => textRow(isPair ? row.texts : [joinedText(row)], tokenizer, length))
  return { width: length, values: joined(encoded, length), labels, classes: classNames?.length }
}

/** The number of a class, or the number that a regression label is. */
function numberOf(label: string, classNames: readonly string[] | undefined): number | undefined {
  const number = classNames === undefined ? Number(label) : classNames.indexOf(label)
  return Number.isFinite(number) && (classNames === undefined || number >= 0) ? number : undefined
}

function joined(rows: readonly Int32Array[], width: number): Int32Array {
  const values = new Int32Array(rows.length * width)
  for (const [row, tokens] of rows.entries()) values.set(tokens, row * width)
  return values
}

/** Labels in alphabetical order, so that peers with the same labels number them alike. */
function namesOf({ rows }: Texts): readonly string[] {
  return [...new Set(rows.flatMap(({ label }) => (label === undefined ? [] : [label])))].sort()
}

/**
 * Text for networks: a file becomes rows of tokens. A model that predicts the next token reads any text; a classifier reads CSV
 * or JSON lines with a label. Tokenization is part of the network: it is stored with it, and peers must agree on it.
 */

import { isQuantity, type Rows, rowsOfTokens, type StreamOptions, type TokenRows } from '../data/index.js'
import { OptionError } from '../learning/index.js'
import type { ModelSpec } from '../nn/spec/model-spec.js'
import type { NetworkSpec, Target, TextSpec } from '../nn/spec/network-spec.js'
import { masksPadding, readsPairs } from '../nn/spec/presets.js'
import type { TokenSample } from '../nn/types.js'
import type { KnownText } from './checkpoint.js'
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
  textsOf,
  tokenizationOf
} from './texts.js'

const DEFAULT_LENGTH = 64

export interface TextTask {
  readonly network: NetworkSpec
  readonly tokens: TokenRows
}

/**
 * The rows of a text file and the network that reads them.
 * @param layers of a model that reads text
 * @param known of the checkpoint that the model starts from
 * @param needsLabels otherwise the label of a row without one is NaN
 * @throws OptionError, ModelError, HeaderError
 */
export async function textTask(
  options: TaskOptions,
  layers: ModelSpec,
  known?: KnownText,
  needsLabels = true
): Promise<TextTask> {
  const { length = known?.length ?? Math.min(DEFAULT_LENGTH, known?.positions ?? DEFAULT_LENGTH), tokenizer } = options
  const given: StreamOptions | undefined = typeof options.data === 'string' ? { data: options.data } : options.data
  if (given === undefined) throw noData()
  const content = await readText(given.data, given.encoding)
  const format = textFormatOf(given)
  const columns = given.header === false ? undefined : (given.columns ?? known?.columns)
  const hints = { ...given, label: given.label ?? known?.label, columns }
  const texts =
    format && known?.target !== 'next-token' ? readTexts(content, given.data, format, hints, needsLabels) : undefined
  const { alphabet, pieces } = known ?? {}
  const isKnown = tokenizer === undefined && (alphabet !== undefined || pieces !== undefined)
  if (known !== undefined && tokenizer === undefined && !isKnown) {
    throw new OptionError(`${known.source} has no tokenizer: give --tokenizer FILE`)
  }
  const tokenization = isKnown ? { alphabet, pieces } : await tokenizationOf(tokenizer, textsOf(content, texts))
  const labelled = texts && {
    columns: texts.columns,
    label: texts.label,
    ...(readsPairs(layers) && texts.columns.length === 2 && { isPair: true }),
    ...(!predictsNumbers(options, texts, known) && { classNames: options.classNames ?? namesFor(texts, known) })
  }
  const text: TextSpec = { length, ...tokenization, ...labelled }
  const sample = await sampleOf(text, layers, known)
  const tokens = texts
    ? await labelledTokens(text, texts.rows, given.data, needsLabels)
    : await nextTokens(text, content)
  return { network: { layers, sample, target: targetOf(text), text }, tokens }
}

/** @throws OptionError if the tokenizer has more tokens than the model of the checkpoint */
async function sampleOf(text: TextSpec, layers: ModelSpec, known: KnownText | undefined): Promise<TokenSample> {
  const { createTokenizer } = await import('../l2l/index.js')
  const tokenizer = createTokenizer(text)
  const { padding, separator } = tokenizer
  const { vocabulary } = known ?? tokenizer
  if (tokenizer.vocabulary > vocabulary) {
    throw new OptionError(
      `the tokenizer has ${tokenizer.vocabulary} tokens, and the model of ${known?.source} has ${vocabulary}`
    )
  }
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
  const { data, encoding } = options
  if (data === undefined) throw noData()
  const content = await readText(data, encoding)
  if (target.kind === 'next-token') return nextTokens(text, content)
  const format = textFormatOf({ ...options, data }) ?? 'jsonl'
  return labelledTokens(
    text,
    readTexts(content, data, format, knownColumns(text, options), needsLabels).rows,
    data,
    needsLabels
  )
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
  const labels = Float64Array.from(rows, ({ label, line }) => {
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

/** Whether labels are numbers to predict. Inferred as for tables if no option determines it. */
function predictsNumbers(options: TaskOptions, { rows }: Texts, known: KnownText | undefined): boolean {
  const target = options.target ?? known?.target
  if (target !== undefined) return target === 'number'
  if (options.classNames !== undefined || known?.classNames !== undefined) return false
  const labels = rows.flatMap(({ label }) => (label === undefined ? [] : [Number(label)]))
  return labels.length > 0 && labels.every(Number.isFinite) && isQuantity(labels)
}

/** Names of the checkpoint, or labels in alphabetical order, so that peers with the same labels number them alike. */
function namesFor({ rows }: Texts, known: KnownText | undefined): readonly string[] {
  if (known?.classNames !== undefined) return known.classNames
  const names = [...new Set(rows.flatMap(({ label }) => (label === undefined ? [] : [label])))].sort()
  return names.length > 0 ? names : Array.from({ length: known?.classes ?? 0 }, (_, number) => String(number))
}

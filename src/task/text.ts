/**
 * Text for networks: a file becomes rows of tokens. A model that predicts the next token reads any text; a classifier reads JSON
 * lines `{"label": …, "text": …}`. Tokenization is part of the network: it is stored with it, and peers must agree on it.
 */
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import type { Tokenizer } from '../l2l/index.js'
import { OptionError } from '../learner/index.js'
import type { ModelSpec } from '../nn/spec/model-spec.js'
import type { NetworkSpec, TextSpec } from '../nn/spec/network-spec.js'
import type { TokenRows } from '../streams/index.js'
import type { TaskOptions } from './options.js'
import { noData } from './stream.js'

const DEFAULT_LENGTH = 64

export interface TextTask {
  readonly network: NetworkSpec
  readonly tokens: TokenRows
}

/**
 * The rows of a text file and the network that reads them.
 * @param layers of a model that reads text
 * @throws OptionError, ModelError
 */
export async function textTask(options: TaskOptions, layers: ModelSpec): Promise<TextTask> {
  const { length = DEFAULT_LENGTH, tokenizer, classNames } = options
  const data = typeof options.data === 'object' ? options.data.data : options.data
  if (data === undefined) throw noData()
  const text = read(data)
  const isNextToken = !isLabelled(data)
  const spec = await textSpec(tokenizer, isNextToken ? text : textsOf(text, data).join(''), length)
  const names = isNextToken ? undefined : (classNames ?? labelsOf(text, data))
  const tokens = await tokensOf({ text: spec, classNames: names }, data, text)
  const { createTokenizer } = await import('../l2l/index.js')
  const sample = { kind: 'tokens', shape: [length], vocabulary: createTokenizer(spec).vocabulary } as const
  const target =
    names === undefined ? { kind: 'next-token' as const } : { kind: 'class' as const, classes: names.length }
  return { network: { layers, sample, target, text: { ...spec, classNames: names } }, tokens }
}

/** Further rows for a network that exists; undefined if it does not read text. */
export async function moreText({ text }: NetworkSpec, data: string | undefined): Promise<TokenRows | undefined> {
  if (text === undefined) return undefined
  if (data === undefined) throw noData()
  return tokensOf({ text, classNames: text.classNames }, data, read(data))
}

async function textSpec(tokenizer: string | undefined, text: string, length: number): Promise<TextSpec> {
  const { alphabetOf } = await import('../l2l/index.js')
  return tokenizer === undefined ? { length, alphabet: alphabetOf(text) } : { length, pieces: read(tokenizer) }
}

async function tokensOf(
  { text: spec, classNames }: { readonly text: TextSpec; readonly classNames: readonly string[] | undefined },
  data: string,
  text: string
): Promise<TokenRows> {
  const { nextTokenRows, createTokenizer, textRow } = await import('../l2l/index.js')
  const tokenizer: Tokenizer = createTokenizer(spec)
  const { length } = spec
  if (classNames === undefined) {
    const rows = nextTokenRows(text, tokenizer, length)
    return { width: length + 1, values: joined(rows, length + 1) }
  }
  const lines = labelled(text, data)
  const labels = Float32Array.from(lines, ({ label }, line) => {
    const number = classNames.indexOf(String(label))
    if (number >= 0) return number
    throw new OptionError(`${data}:${line + 1}: unknown label ${label}; expected one of ${classNames.join(', ')}`)
  })
  const rows = lines.map(line => textRow(line.text, tokenizer, length))
  return { width: length, values: joined(rows, length), labels, classes: classNames.length }
}

function joined(rows: readonly Int32Array[], width: number): Int32Array {
  const values = new Int32Array(rows.length * width)
  for (const [row, tokens] of rows.entries()) values.set(tokens, row * width)
  return values
}

function isLabelled(path: string): boolean {
  return /\.(jsonl|ndjson)(\.gz)?$/i.test(path)
}

interface Labelled {
  readonly label: unknown
  readonly text: string
}

function labelled(text: string, path: string): Labelled[] {
  return text
    .split('\n')
    .filter(line => line.trim() !== '')
    .map((line, index) => {
      const value = parsed(line)
      if (value !== undefined) return value
      throw new OptionError(`${path}:${index + 1}: expected a line such as {"label": "yes", "text": "some words"}`)
    })
}

function parsed(line: string): Labelled | undefined {
  try {
    const value = JSON.parse(line) as Labelled
    return typeof value.text === 'string' && value.label !== undefined ? value : undefined
  } catch {
    return undefined
  }
}

function textsOf(text: string, path: string): string[] {
  return labelled(text, path).map(line => line.text)
}

/** Labels in alphabetical order, so that peers with the same labels number them alike. */
function labelsOf(text: string, path: string): string[] {
  return [...new Set(labelled(text, path).map(({ label }) => String(label)))].sort()
}

function read(path: string): string {
  try {
    const bytes = readFileSync(path)
    return (bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes).toString('utf8')
  } catch (error) {
    throw new OptionError(`${path}: cannot be read (${(error as NodeJS.ErrnoException).code}): give a text file`)
  }
}

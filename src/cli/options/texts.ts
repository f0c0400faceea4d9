/**
 * Text for networks: a file becomes rows of tokens. A model that predicts the next token reads any text; a classifier reads
 * JSON lines `{"label": …, "text": …}`. How text is cut is part of the network: it is stored with it, and peers must agree on it.
 */
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import type { Tokenizer } from '../../l2l/index.js'
import type { NetworkSpec, TextSpec } from '../../nn/spec/network-spec.js'
import type { TokenRows } from '../../streams/index.js'
import { UsageError } from '../errors.js'
import { isNetwork, type NetworkFlags } from './networks.js'

const DEFAULT_LENGTH = 64

export interface TextFlags extends NetworkFlags {
  readonly data?: string
  readonly model?: string
  readonly length?: number
  readonly tokenizer?: string
  readonly classNames?: readonly string[]
  readonly classes?: number
}

export interface TextTask {
  readonly network: NetworkSpec
  readonly tokens: TokenRows
}

/**
 * The rows and the network, if the model is one that reads text.
 * @throws UsageError, ModelError
 */
export async function textTask(flags: TextFlags): Promise<TextTask | undefined> {
  const { model, data, length = DEFAULT_LENGTH } = flags
  if (model === undefined || !isNetwork(model)) return undefined
  const { loadModel, readsText } = await import('../../l2l/index.js')
  const layers = loadModel(model)
  if (!readsText(layers)) return undefined
  if (data === undefined) throw new UsageError(`model ${model} reads text: give --data FILE`)
  const text = read(data)
  const foretells = !isLabelled(data)
  const spec = await textSpec(flags, foretells ? text : textsOf(text, data).join(''), length)
  const names = foretells ? undefined : (flags.classNames ?? namesIn(text, data))
  const tokens = await tokensOf({ text: spec, classNames: names }, data, text)
  const { tokenizerOf } = await import('../../l2l/index.js')
  const sample = { kind: 'tokens', shape: [length], vocabulary: tokenizerOf(spec).vocabulary } as const
  const target =
    names === undefined ? { kind: 'next-token' as const } : { kind: 'class' as const, classes: names.length }
  return { network: { layers, sample, target, text: { ...spec, classNames: names } }, tokens }
}

/** More rows for a network that exists already; undefined if it reads no text. */
export async function moreText({ text }: NetworkSpec, data: string | undefined): Promise<TokenRows | undefined> {
  if (text === undefined) return undefined
  if (data === undefined) throw new UsageError('the network reads text: give --data FILE')
  return tokensOf({ text, classNames: text.classNames }, data, read(data))
}

async function textSpec({ tokenizer }: TextFlags, text: string, length: number): Promise<TextSpec> {
  const { alphabetOf } = await import('../../l2l/index.js')
  return tokenizer === undefined ? { length, alphabet: alphabetOf(text) } : { length, pieces: read(tokenizer) }
}

async function tokensOf(
  { text: spec, classNames }: { readonly text: TextSpec; readonly classNames: readonly string[] | undefined },
  data: string,
  text: string
): Promise<TokenRows> {
  const { nextTokenRows, tokenizerOf, wholeTextRow } = await import('../../l2l/index.js')
  const tokenizer: Tokenizer = tokenizerOf(spec)
  const { length } = spec
  if (classNames === undefined) {
    const rows = nextTokenRows(text, tokenizer, length)
    return { width: length + 1, values: joined(rows, length + 1) }
  }
  const lines = labelled(text, data)
  const labels = Float32Array.from(lines, ({ label }, line) => {
    const number = classNames.indexOf(String(label))
    if (number < 0) throw new UsageError(`${data}:${line + 1}: label ${label} is none of ${classNames.join(', ')}`)
    return number
  })
  const rows = lines.map(line => wholeTextRow(line.text, tokenizer, length))
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
      throw new UsageError(`${path}:${index + 1}: give lines such as {"label": "yes", "text": "some words"}`)
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

/** Labels in the order of their names, so that peers come to the same numbers. */
function namesIn(text: string, path: string): string[] {
  return [...new Set(labelled(text, path).map(({ label }) => String(label)))].sort()
}

function read(path: string): string {
  try {
    const bytes = readFileSync(path)
    return (bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes).toString('utf8')
  } catch (error) {
    throw new UsageError(`${path}: cannot be read (${(error as NodeJS.ErrnoException).code}): give a text file`)
  }
}

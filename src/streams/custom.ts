/** Readers that a program brings along: formats by name, for files or whatever else can tell inputs one by one. */
import { StreamOptionsError } from './errors.js'
import type { Reader } from './reader.js'
import { RowBuffer, type Rows } from './rows.js'

export type CustomFormat = `custom:${string}`

export interface CustomInput {
  /** Class number from 0, or the number to predict; NaN or left out: unlabelled. */
  readonly label?: number
  /** One number a feature, from feature 0 on, or numbers by feature number. */
  readonly features: ArrayLike<number> | ReadonlyMap<number, number>
}

export interface CustomReader {
  /** Features, where known. Needed by peers. */
  readonly dimension?: number
  /** Classes, where known. */
  readonly classes?: number
  /** Whether the input can be read again. Default true. */
  readonly repeatable?: boolean
  /** The inputs from the begin, in an order of their own. */
  read(): AsyncIterable<CustomInput> | Iterable<CustomInput>
}

/** @param data what stands where a file's name would */
export type CustomReaderFactory = (data: string) => CustomReader | Promise<CustomReader>

const BATCH_ROWS = 256
const formats = new Map<string, CustomReaderFactory>()

export function isCustomFormat(format: string | undefined): format is CustomFormat {
  return format?.startsWith('custom:') ?? false
}

export function addReader(format: CustomFormat, factory: CustomReaderFactory): void {
  formats.set(format, factory)
}

/** @throws StreamOptionsError if no plug-in has the format */
export async function openOwn(format: CustomFormat, data: string, constant: boolean): Promise<Reader> {
  const factory = formats.get(format)
  if (factory === undefined) {
    const names = [...formats.keys()].join(', ') || 'none'
    throw new StreamOptionsError(`there is no reader ${format}: give the plug-in that has it (known: ${names})`)
  }
  const reader = await factory(data)
  const { dimension, classes, repeatable = true } = reader
  const shift = constant ? 1 : 0
  return {
    dimension: dimension === undefined ? undefined : dimension + shift,
    classes,
    skipped: 0,
    repeatable,
    pass: () => batches(reader.read(), `${data} (${format})`, shift)
  }
}

async function* batches(
  inputs: AsyncIterable<CustomInput> | Iterable<CustomInput>,
  source: string,
  shift: number
): AsyncGenerator<Rows> {
  const out = new RowBuffer()
  let before = 0
  for await (const input of inputs) {
    append(out, input, shift, () => `${source}: input ${before + out.size + 1}`)
    if (out.size < BATCH_ROWS) continue
    before += out.size
    yield out.view()
    out.clear()
  }
  if (out.size > 0) yield out.view()
}

function append(
  out: RowBuffer,
  { label = Number.NaN, features }: CustomInput,
  shift: number,
  where: () => string
): void {
  const entries = features instanceof Map ? [...features] : Array.from(features as ArrayLike<number>, (x, i) => [i, x])
  out.reserve(1, entries.length + shift)
  let at = out.entries
  if (shift === 1) {
    out.indices[at] = 0
    out.values[at++] = 1
  }
  for (const [feature, value] of entries) {
    if (!Number.isInteger(feature) || feature < 0 || !Number.isFinite(Math.fround(value))) {
      throw new StreamOptionsError(`${where()}: feature ${feature} is ${value}: a reader gives finite float32 numbers`)
    }
    out.indices[at] = feature + shift
    out.values[at++] = value
  }
  out.labels[out.size] = label
  out.numeric[out.size] = 0
  out.entries = at
  out.offsets[++out.size] = at
}

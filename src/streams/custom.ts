/** Custom readers from plug-ins: named formats for files or any other source that yields inputs one by one. */
import { StreamOptionsError } from './errors.js'
import type { InputOption, Reader } from './format.js'
import { RowBuffer, type Rows } from './rows.js'

/** Name of a reader of a plug-in. */
export type CustomFormat = `custom:${string}`

/** One input of a custom reader. */
export interface CustomInput {
  /** Class number from 0, or the number to predict. @default NaN, which means unlabelled */
  readonly label?: number
  /** Values of the features 0, 1, …, or values by feature number. */
  readonly features: ArrayLike<number> | ReadonlyMap<number, number>
}

/** Inputs from a source that only the plug-in can read. */
export interface CustomReader {
  /** Number of features, if known. Peers need it. */
  readonly dimension?: number
  /** Number of classes, if known. */
  readonly classes?: number
  /** Whether the input can be read again. @default true */
  readonly repeatable?: boolean
  /** The inputs from the start, in an order that the reader chooses. */
  read(): AsyncIterable<CustomInput> | Iterable<CustomInput>
}

/**
 * Opens the data of a stream.
 * @param data the value of the option `data`, in place of a file name
 */
export type CustomReaderFactory = (data: string) => CustomReader | Promise<CustomReader>

/** The options that custom formats accept, of those that not every input takes. */
export const customInputOptions: readonly InputOption[] = ['dimension', 'classes']

const BATCH_ROWS = 256
const formats = new Map<string, CustomReaderFactory>()

export function isCustomFormat(format: string | undefined): format is CustomFormat {
  return format?.startsWith('custom:') ?? false
}

export function addReader(format: CustomFormat, factory: CustomReaderFactory): void {
  formats.set(format, factory)
}

/** @throws StreamOptionsError if no plug-in provides the format */
export async function openCustom(format: CustomFormat, data: string, constant: boolean): Promise<Reader> {
  const factory = formats.get(format)
  if (factory === undefined) {
    const names = [...formats.keys()].join(', ') || 'none'
    throw new StreamOptionsError(`unknown reader '${format}' (known: ${names}): load the plug-in that provides it`)
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
      throw new StreamOptionsError(
        `${where()}: feature ${feature} is ${value}: a reader must return finite float32 numbers`
      )
    }
    out.indices[at] = feature + shift
    out.values[at++] = value
  }
  out.labels[out.size] = label
  out.numeric[out.size] = 0
  out.entries = at
  out.offsets[++out.size] = at
}

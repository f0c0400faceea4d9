/**
 * The safetensors format: an eight-byte length, a JSON header of names, types, shapes and offsets, then the numbers.
 * Tensors are read one at a time, so that a model larger than the free memory can be imported layer by layer.
 */
import { closeSync, fstatSync, openSync, readSync, writeSync } from 'node:fs'
import { endianness } from 'node:os'
import * as z from 'zod'
import { fileProblem } from '../../base/errors.js'
import { FLOAT_BYTES, ModelError, sizeOf } from '../types.js'

/** A tensor whose numbers are read when they are needed. */
interface LazyTensor {
  readonly shape: readonly number[]
  /** The numbers as 32-bit floats. @throws ModelError if the file cannot be read, or holds other numbers */
  read(): Float32Array
}

export interface NamedTensor extends LazyTensor {
  readonly name: string
}

/** A file's tensors by name, in the file's order. */
export type TensorFile = ReadonlyMap<string, StoredTensor>

export interface StoredTensor extends LazyTensor {
  /** Such as F32, BF16 or I64. Only floats of 16 and 32 bits can be read. */
  readonly dtype: string
  /** The bytes in the file. */
  bytes(): Uint8Array
}

const LENGTH_BYTES = 8
/** As in the reference implementation. Larger headers are rejected before they are read. */
const MAX_HEADER_BYTES = 100_000_000
const METADATA = '__metadata__'

const BYTES = { F32: 4, F16: 2, BF16: 2 } as const
const count = z.int().min(0)
const entrySchema = z.object({
  dtype: z.string(),
  shape: z.array(count),
  data_offsets: z.tuple([count, count])
})

/** The string entries of the file's header. @throws ModelError */
export function readMetadata(file: string): Readonly<Record<string, string>> {
  const { [METADATA]: metadata = {} } = headerOf(file).header
  return metadata as Record<string, string>
}

/** @throws ModelError if the file cannot be read or is not in the format */
export function readSafetensors(file: string): TensorFile {
  const { header, start, size } = headerOf(file)
  const tensors = new Map<string, StoredTensor>()
  for (const [name, value] of Object.entries(header)) {
    if (name === METADATA) continue
    const parsed = entrySchema.safeParse(value)
    if (!parsed.success) throw invalidFile(file, `tensor ${name}: ${parsed.error.issues[0].message}`)
    const { dtype, shape, data_offsets } = parsed.data
    const [from, to] = data_offsets
    if ((isFloat(dtype) && to - from !== sizeOf(shape) * BYTES[dtype]) || start + to > size) {
      throw invalidFile(file, `tensor ${name} has ${to - from} bytes at ${from} of ${size - start}`)
    }
    const bytes = () => bytesAt(file, start + from, to - from)
    const read = () => {
      if (isFloat(dtype)) return floatsOf(bytes(), dtype)
      throw new ModelError(`${file}: tensor ${name} has dtype ${dtype}, expected F32, F16 or BF16`)
    }
    tensors.set(name, { shape, dtype, bytes, read })
  }
  return tensors
}

/** Whether the numbers of that type can be read. */
export function isFloat(dtype: string): dtype is keyof typeof BYTES {
  return Object.hasOwn(BYTES, dtype)
}

/**
 * @param metadata string entries for the header
 * @returns the length of the file in bytes, and its consecutive chunks, each made when it is requested
 */
export function encodeSafetensors(
  tensors: readonly NamedTensor[],
  metadata: Readonly<Record<string, string>> = {}
): { readonly bytes: number; readonly chunks: Iterable<Uint8Array> } {
  let at = 0
  const header: Record<string, unknown> = { [METADATA]: { format: 'pt', ...metadata } }
  for (const { name, shape } of tensors) {
    const length = FLOAT_BYTES * sizeOf(shape)
    header[name] = { dtype: 'F32', shape, data_offsets: [at, at + length] }
    at += length
  }
  const json = Buffer.from(JSON.stringify(header))
  // The numbers start at a multiple of eight bytes.
  const length = Math.ceil(json.length / LENGTH_BYTES) * LENGTH_BYTES
  const head = Buffer.alloc(LENGTH_BYTES + length, ' ')
  head.writeBigUInt64LE(BigInt(length))
  json.copy(head, LENGTH_BYTES)
  return { bytes: head.length + at, chunks: chunksOf(head, tensors) }
}

function* chunksOf(head: Uint8Array, tensors: readonly NamedTensor[]): Generator<Uint8Array> {
  yield head
  for (const tensor of tensors) yield bytesOf(tensor.read())
}

/** @throws ModelError if the file cannot be written */
export function writeSafetensors(
  file: string,
  tensors: readonly NamedTensor[],
  metadata: Readonly<Record<string, string>> = {}
): void {
  withFile(file, 'w', handle => {
    for (const chunk of encodeSafetensors(tensors, metadata).chunks) {
      for (let written = 0; written < chunk.length; ) written += writeSync(handle, chunk, written)
    }
  })
}

function headerOf(file: string): { header: Record<string, unknown>; start: number; size: number } {
  const { length, size } = withFile(file, 'r', handle => {
    const first = Buffer.alloc(LENGTH_BYTES)
    readSync(handle, first, 0, LENGTH_BYTES, 0)
    return { length: Number(first.readBigUInt64LE()), size: fstatSync(handle).size }
  })
  if (length > Math.min(MAX_HEADER_BYTES, size - LENGTH_BYTES))
    throw invalidFile(file, `the header length is ${length} bytes`)
  try {
    const header = JSON.parse(bytesAt(file, LENGTH_BYTES, length).toString('utf8'))
    if (typeof header === 'object' && header !== null) return { header, start: LENGTH_BYTES + length, size }
  } catch {
    // Reported below.
  }
  throw invalidFile(file, 'the header is not a JSON object')
}

function bytesAt(file: string, position: number, length: number): Buffer {
  const bytes = Buffer.alloc(length)
  withFile(file, 'r', handle => {
    for (let read = 0; read < length; ) {
      const more = readSync(handle, bytes, read, length - read, position + read)
      if (more === 0) throw invalidFile(file, 'unexpected end of file')
      read += more
    }
  })
  return bytes
}

function withFile<T>(file: string, flags: 'r' | 'w', use: (handle: number) => T): T {
  let handle: number
  try {
    handle = openSync(file, flags)
  } catch (error) {
    throw new ModelError(`cannot ${flags === 'r' ? 'read' : 'write'} ${file} (${fileProblem(error)})`)
  }
  try {
    return use(handle)
  } finally {
    closeSync(handle)
  }
}

function invalidFile(file: string, reason: string): ModelError {
  return new ModelError(`${file} is not a valid safetensors file: ${reason}`)
}

function bytesOf(numbers: Float32Array): Uint8Array {
  return new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength)
}

function floatsOf(bytes: Buffer, type: keyof typeof BYTES): Float32Array {
  const isAligned = bytes.byteOffset % FLOAT_BYTES === 0 && endianness() === 'LE'
  if (type === 'F32' && isAligned) return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / FLOAT_BYTES)
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const floats = new Float32Array(bytes.length / BYTES[type])
  const bits = new Uint32Array(floats.buffer)
  for (let i = 0; i < floats.length; i++) {
    if (type === 'F32') bits[i] = view.getUint32(FLOAT_BYTES * i, true)
    else if (type === 'BF16') bits[i] = view.getUint16(2 * i, true) << 16
    else floats[i] = halfToFloat(view.getUint16(2 * i, true))
  }
  return floats
}

/** IEEE 754 binary16: 1 sign bit, 5 exponent bits, 10 fraction bits. */
function halfToFloat(half: number): number {
  const sign = half & 0x8000 ? -1 : 1
  const exponent = (half >> 10) & 0x1f
  const fraction = half & 0x3ff
  if (exponent === 0) return sign * fraction * 2 ** -24
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15)
}

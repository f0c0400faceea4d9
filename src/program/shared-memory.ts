/**
 * The file in memory that a peer and its program have mapped: a page, which begins with the number of updates of the newest
 * predictor, and five vectors of float32 numbers: two generations of parameters, two gradient sums, and the running average. In a
 * vector, each block begins at a multiple of 16 numbers.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import type { Blocks, Layout } from '../learning/types.js'
import { ProgramError } from './messages.js'

const PAGE = 4096
const ALIGNMENT = 16
const FLOAT_BYTES = Float32Array.BYTES_PER_ELEMENT
const VECTORS = 5

/** The vectors, each by block. No one may use them after `close`. */
export interface SharedMemory {
  readonly parameters: readonly [Blocks, Blocks]
  readonly sums: readonly [Blocks, Blocks]
  readonly average: Blocks
  /** The number of updates of the newest predictor, which the program may read at any time. */
  readonly newest: BigInt64Array
  /** Whether the file is as long as it was. An access to what a program has cut off ends the process. */
  isWhole(): boolean
  close(): void
}

/** Where each block begins, and the length of a vector. */
function placesOf({ blocks }: Layout): { readonly offsets: readonly number[]; readonly stride: number } {
  const offsets: number[] = []
  let stride = 0
  for (const { length } of blocks) {
    offsets.push(stride)
    stride += Math.ceil(length / ALIGNMENT) * ALIGNMENT
  }
  return { offsets, stride }
}

/** Length of the file in bytes. */
export function memoryBytes(layout: Layout): number {
  return PAGE + FLOAT_BYTES * VECTORS * placesOf(layout).stride
}

/** Opens the file of a program. @throws ProgramError */
function openMemory(path: string, layout: Layout): number {
  let file: number
  try {
    file = openSync(path, 'r+')
  } catch (error) {
    throw new ProgramError(`memory: ${path} cannot be opened (${(error as NodeJS.ErrnoException).code})`)
  }
  const [{ size }, expected] = [fstatSync(file), memoryBytes(layout)]
  if (size === expected) return file
  closeSync(file)
  throw new ProgramError(`memory: ${path} has ${size} bytes, and these blocks need ${expected}`)
}

/** The parameters of generation 0 in a file, copied. @throws ProgramError */
export function readStart(path: string, layout: Layout): Float32Array[] {
  const file = openMemory(path, layout)
  try {
    const { offsets } = placesOf(layout)
    return layout.blocks.map(({ length }, k) => {
      const block = new Float32Array(length)
      readSync(file, new Uint8Array(block.buffer), 0, block.byteLength, PAGE + FLOAT_BYTES * offsets[k])
      return block
    })
  } finally {
    closeSync(file)
  }
}

const [READ_WRITE, SHARED] = [3, 1]

/** Maps the file of a program. @throws ProgramError if it does not fit, or the optional package koffi is missing */
export async function mapMemory(path: string, layout: Layout): Promise<SharedMemory> {
  if (process.platform === 'win32')
    throw new ProgramError('a program shares memory with its peer on Linux and macOS only')
  const koffi = await import('koffi').then(
    module => module.default,
    () => {
      throw new ProgramError('memory that is shared with a program requires the package koffi: run npm ci again')
    }
  )
  const libc = koffi.load(null)
  const map = libc.func('void *mmap(void *at, size_t bytes, int protection, int flags, int file, int64_t from)')
  const unmap = libc.func('int munmap(void *address, size_t bytes)')
  const bytes = memoryBytes(layout)
  const file = openMemory(path, layout)
  const address = map(null, bytes, READ_WRITE, SHARED, file, 0)
  const memory: ArrayBuffer = koffi.view(address, bytes)
  const { offsets, stride } = placesOf(layout)
  const vector = (index: number) =>
    layout.blocks.map(
      ({ length }, k) => new Float32Array(memory, PAGE + FLOAT_BYTES * (index * stride + offsets[k]), length)
    )
  return {
    parameters: [vector(0), vector(1)],
    sums: [vector(2), vector(3)],
    average: vector(4),
    newest: new BigInt64Array(memory, 0, 1),
    isWhole: () => fstatSync(file).size >= bytes,
    close: () => {
      unmap(address, bytes)
      closeSync(file)
    }
  }
}

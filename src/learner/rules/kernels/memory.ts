/**
 * The kernels of update rules, in WebAssembly, and their memory. They work on sections of vectors that fit into the processor's
 * cache. Vectors in other memory are copied to theirs and back. Their operations are those of float32, so every machine computes the
 * same bits.
 */
import { type SharedMemory, withMemory, withSharedMemory } from '../../../base/assembler.js'
import { isFiniteBlock } from '../../../base/floats.js'
import { adamStep } from './adam.js'
import { codeKernels, TABLE_BYTES } from './codes.js'
import { excess } from './excess.js'

/** Count of numbers of a section. */
export const SECTION = 6144
/** Slot of the first vector of a rule's state, after those of parameters and gradient. */
export const FIRST_STATE_SLOT = 2

export interface KernelMemory {
  readonly kernels: ReturnType<typeof withMemory>['kernels']
  readonly buffer: ArrayBufferLike
  /** Four sections for vectors. */
  readonly slots: readonly Float32Array[]
  /** Codes of a section, each a byte. */
  readonly codes: Uint8Array
  /** The codes as floats; the last one is the result of `largest`. */
  readonly packed: Float32Array
  /** Room for two tables of codes. */
  readonly tables: readonly Uint8Array[]
}

const KERNELS = [adamStep, excess, ...codeKernels]

/** A vector of floats that kernels use in place starts and ends at a multiple of so many bytes. */
export const VECTOR_BYTES = 16

const SIZES = [
  ...Array.from({ length: 4 }, () => 4 * SECTION),
  SECTION + 16,
  4 * (SECTION / 3 + 1),
  TABLE_BYTES,
  TABLE_BYTES
].map(size => Math.ceil(size / VECTOR_BYTES) * VECTOR_BYTES)

/** Bytes that the kernels of a thread need. */
export const KERNEL_BYTES = SIZES.reduce((sum, size) => sum + size, 0)

let created: KernelMemory | undefined

/** Created at first use, because most processes never need it. */
export function kernelMemory(): KernelMemory {
  if (created === undefined) {
    const { kernels, buffer } = withMemory(KERNELS, KERNEL_BYTES)
    created = divided(kernels, buffer, 0)
  }
  return created
}

/**
 * From now on, the kernels of this thread use vectors in this memory in place.
 * @param at offset of `KERNEL_BYTES` bytes that only this thread uses
 */
export function useKernelMemory(memory: SharedMemory, at: number): void {
  created = divided(withSharedMemory(KERNELS, memory), memory.buffer, at)
}

/** The kernels of this thread no longer keep this memory. */
export function releaseKernelMemory({ buffer }: SharedMemory): void {
  if (created?.buffer === buffer) created = undefined
}

function divided(kernels: KernelMemory['kernels'], buffer: ArrayBufferLike, start: number): KernelMemory {
  let at = start
  const parts = SIZES.map(size => {
    at += size
    return new Uint8Array(buffer, at - size, size)
  })
  const floats = ({ buffer, byteOffset, length }: Uint8Array) => new Float32Array(buffer, byteOffset, length / 4)
  return {
    kernels,
    buffer,
    slots: parts.slice(0, 4).map(floats),
    codes: parts[4],
    packed: floats(parts[5]),
    tables: parts.slice(6)
  }
}

/**
 * The address of values: their own if they are in the kernels' memory, else that of the slot, to which they are copied. Up to three
 * zeros follow them.
 */
export function addressOf(values: Float32Array, slot: number): number {
  const { slots } = kernelMemory()
  const there = isInMemory(values) ? values : slots[slot].subarray(0, values.length)
  if (there !== values) there.set(values)
  const end = there.byteOffset / 4 + there.length
  if (end % 4 !== 0) new Float32Array(there.buffer).fill(0, end, Math.ceil(end / 4) * 4)
  return there.byteOffset
}

/** Copies what a kernel has written to the slot, unless the values are in the kernels' memory themselves. */
export function readBack(values: Float32Array, slot: number): void {
  if (!isInMemory(values)) values.set(kernelMemory().slots[slot].subarray(0, values.length))
}

/** Whether all numbers are finite. */
export function areFinite(values: Float32Array): boolean {
  if (!isInMemory(values)) return isFiniteBlock(values)
  const { kernels, packed } = kernelMemory()
  const last = packed.length - 1
  kernels.excess(addressOf(values, 0), values.length, packed.byteOffset + 4 * last)
  return packed[last] === 0
}

export function isInMemory({ buffer }: Float32Array): boolean {
  return buffer === kernelMemory().buffer
}

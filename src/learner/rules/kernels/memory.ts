/**
 * The kernels of update rules, in WebAssembly, and their memory. They work on sections of vectors that fit into the processor's
 * cache. Their operations are those of float32, so every machine computes the same bits.
 */
import { withMemory } from '../../../base/assembler.js'
import { adamStep } from './adam.js'
import { codeKernels, TABLE_BYTES } from './codes.js'

/** Count of numbers of a section. */
export const SECTION = 6144
/** Slot of the first vector of a rule's state, after those of parameters and gradient. */
export const FIRST_STATE_SLOT = 2

export interface KernelMemory {
  readonly kernels: ReturnType<typeof withMemory>['kernels']
  /** Four sections for vectors. */
  readonly slots: readonly Float32Array[]
  /** Codes of a section, each a byte. */
  readonly codes: Uint8Array
  /** The codes as floats, and last the result of `largest`. */
  readonly packed: Float32Array
  /** Room for two tables of codes. */
  readonly tables: readonly Uint8Array[]
}

let created: KernelMemory | undefined

/** Created at first use, because most processes never need it. */
export function kernelMemory(): KernelMemory {
  created ??= create()
  return created
}

function create(): KernelMemory {
  const sizes = [
    ...Array.from({ length: 4 }, () => 4 * SECTION),
    SECTION + 16,
    4 * (SECTION / 3 + 1),
    TABLE_BYTES,
    TABLE_BYTES
  ]
  const { kernels, buffer } = withMemory(
    [adamStep, ...codeKernels],
    sizes.reduce((sum, size) => sum + size, 0)
  )
  let at = 0
  const parts = sizes.map(size => {
    at += size
    return new Uint8Array(buffer, at - size, size)
  })
  const floats = ({ buffer, byteOffset, length }: Uint8Array) => new Float32Array(buffer, byteOffset, length / 4)
  return {
    kernels,
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

export function isInMemory({ buffer }: Float32Array): boolean {
  return buffer === kernelMemory().packed.buffer
}

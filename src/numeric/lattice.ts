/**
 * Gradient sums as integers: multiples of a step that each element of a predictor has (its grid). Additions of integers are exact,
 * so any order and any tree of additions gives the same bits. Steps are powers of two: products with them are exact as well.
 */
import { MAX_ROUNDED } from './block-code.js'
import { addNarrow, areAllIntegers, MIN_KERNEL, multiplied, narrowed } from './block-kernels.js'
import type { SparseBlock, Sum, SumBlock } from './sums.js'

/**
 * Exponents of the steps, −64 … 64: step = 2^exponent. A block has one exponent for each element, or a single one for all.
 * Immutable.
 */
export type Grid = readonly Int8Array[]

/** Maximum magnitude of a sum. Differences from up to two others are then exact in float32 as well. */
const MAX_SUM = 2 ** 22

export const LARGEST_EXPONENT = 64
const steps = Float64Array.from({ length: 2 * LARGEST_EXPONENT + 1 }, (_, i) => 2 ** (i - LARGEST_EXPONENT))

const float = new Float32Array(1)
const floatBits = new Int32Array(float.buffer)

/** Exponent of the power of two that is nearest to √square in ratio. @param square ≥ 0 */
export function exponentOfRoot(square: number): number {
  float[0] = square
  const exponent = (floatBits[0] >>> 23) - 127
  return Math.max(-LARGEST_EXPONENT, Math.min(LARGEST_EXPONENT, (exponent + 1) >> 1))
}

/** The step of element i of a block. */
export function stepOf(exponents: Int8Array, i: number): number {
  return steps[exponents[exponents.length === 1 ? 0 : i] + LARGEST_EXPONENT]
}

/** 2^exponent, for the exponents of a grid and their negatives. */
export function powerOfTwo(exponent: number): number {
  return steps[exponent + LARGEST_EXPONENT]
}

/** The multiple of a step that is nearest to a value, as an integer of magnitude `MAX_ROUNDED` at most. */
export function rounded(value: number, step: number): number {
  // Adding 0 turns −0 into 0.
  return Math.max(-MAX_ROUNDED, Math.min(MAX_ROUNDED, Math.round(value / step))) + 0
}

/** The values of integer sums: each element times its step. */
export function valuesOf(sum: readonly Float32Array[], grid: Grid): Float32Array[] {
  return sum.map((block, b) => multiplyInto(new Float32Array(block.length), block, grid[b]))
}

/** The same for one block. @param values receives them */
export function multiplyInto(values: Float32Array, block: Float32Array, exponents: Int8Array): Float32Array {
  if (block.length >= MIN_KERNEL) return multiplied(block, exponents, values)
  for (let i = 0; i < values.length; i++) values[i] = block[i] === 0 ? 0 : block[i] * stepOf(exponents, i)
  return values
}

/** Integers in the shortest type that holds all of them. */
export type PackedBlock = Int8Array | Int16Array | Int32Array | SparseBlock

/** A copy of an integer block, mostly a quarter of its size or less. */
export function packed(sum: SumBlock): PackedBlock {
  const compact = sum.isSparse ? sum.compactCopy() : undefined
  if (compact !== undefined && 'indices' in compact) return compact
  const block = sum.read()
  const short = block.length >= MIN_KERNEL ? narrowed(block) : undefined
  if (short !== undefined) return short
  let largest = 0
  for (let i = 0; i < block.length; i++) largest = Math.max(largest, Math.abs(block[i]))
  const Type = largest < 2 ** 7 ? Int8Array : largest < 2 ** 15 ? Int16Array : Int32Array
  const copy = new Type(block.length)
  copy.set(block)
  return copy
}

/** Bytes of the numbers of a block. */
export function packedBytes(block: PackedBlock): number {
  return 'indices' in block ? block.indices.byteLength + block.values.byteLength : block.byteLength
}

/** block += factor · addend. Exact for sums and differences of valid sums, see `MAX_SUM`. */
export function addPacked(sum: SumBlock, addend: PackedBlock, factor: 1 | -1): void {
  if ('indices' in addend) {
    sum.addElements(addend, factor)
    return
  }
  const block = sum.write()
  if (block.length >= MIN_KERNEL && !(addend instanceof Int32Array)) addNarrow(block, addend, factor)
  else for (let i = 0; i < block.length; i++) block[i] += factor * addend[i]
}

function isInteger(value: number): boolean {
  const integer = value | 0
  return integer === value && integer <= MAX_SUM && integer >= -MAX_SUM
}

/** Whether all elements are integers of magnitude `MAX_SUM` at most. */
export function areIntegers(sum: Sum): boolean {
  return sum.every(block => {
    const { indices, values } = block
    if (indices === undefined && block.length >= MIN_KERNEL) return areAllIntegers(block.read(), MAX_SUM)
    const count = indices?.length ?? values.length
    for (let n = 0; n < count; n++) if (!isInteger(values[indices === undefined ? n : indices[n]])) return false
    return true
  })
}

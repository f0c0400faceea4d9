/**
 * Projections of integer sums: the product with pseudo-random weights, modulo a prime. The projection of a total is the total of the
 * projections. Two different sums have the same one with a probability of 2⁻¹⁶, unless whoever makes them knows the seed.
 */
import type { PackedBlock } from '../base/lattice.js'
import { type SparseBlock, supportOf } from '../base/support.js'

const PRIME = 2 ** 31 - 1
/** Sums of this many products are exact: elements have a magnitude of 2²² at most, and weights are below 2¹⁶. */
const EXACT = 2 ** 14

/** Seeds are integers from 0 to below this. */
export const SEEDS = 2 ** 32

/** @returns an integer from 0 to 2³¹ − 2 */
export function projectionOf(sum: readonly (Float32Array | PackedBlock)[], seed: number): number {
  return totalOf(
    sum.map((block, b) => (isSparse(block) ? sparse(block, mixed(seed ^ b)) : dense(block, mixed(seed ^ b))))
  )
}

/** The projection of the total of sums with these projections. */
export function totalOf(projections: readonly number[]): number {
  const total = projections.reduce((sum, one) => (sum + one) % PRIME, 0)
  return total < 0 ? total + PRIME : total
}

function isSparse(block: Float32Array | PackedBlock): block is SparseBlock {
  return 'indices' in block
}

function sparse({ indices, values }: SparseBlock, key: number): number {
  let total = 0
  for (let from = 0; from < values.length; from += EXACT) {
    const end = Math.min(values.length, from + EXACT)
    for (let n = from; n < end; n++) total += values[n] * weightOf(key, indices[n])
    total %= PRIME
  }
  return total
}

function dense(block: Exclude<Float32Array | PackedBlock, SparseBlock>, key: number): number {
  const known = block instanceof Float32Array ? supportOf(block)?.indices : undefined
  const length = known?.length ?? block.length
  let total = 0
  for (let from = 0; from < length; from += EXACT) {
    const end = Math.min(length, from + EXACT)
    for (let n = from; n < end; n++) {
      const i = known === undefined ? n : known[n]
      if (block[i] !== 0) total += block[i] * weightOf(key, i)
    }
    total %= PRIME
  }
  return total
}

/** 0 to 2¹⁶ − 1. */
function weightOf(key: number, i: number): number {
  return mixed(key ^ Math.imul(i + 1, 0x9e3779b1)) >>> 16
}

/** The finalizer of MurmurHash3. */
function mixed(value: number): number {
  let x = value ^ (value >>> 16)
  x = Math.imul(x, 0x85ebca6b)
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35)
  return x ^ (x >>> 16)
}

/**
 * Projections of integer sums: the dot product with pseudo-random weights, modulo a prime. Projections are additive. Two different sums
 * have the same projection with a probability of about 2⁻¹⁶ if the seed is unknown when the sums are computed.
 */
import type { PackedBlock } from '../base/lattice.js'
import { supportOf } from '../base/support.js'

const PRIME = 2 ** 31 - 1
/** Number of products whose sum is exact: elements have a magnitude of at most 2²², and weights are below 2¹⁶. */
const EXACT = 2 ** 14

/** Number of seeds: 0 to `SEEDS` − 1. */
export const SEEDS = 2 ** 32

/** @returns an integer from 0 to 2³¹ − 2 */
export function projectionOf(sum: readonly (Float32Array | PackedBlock)[], seed: number): number {
  return totalOf(sum.map((block, b) => projectionOfBlock(block, mixed(seed ^ b))))
}

/** Sum of projections. */
export function totalOf(projections: readonly number[]): number {
  const total = projections.reduce((sum, one) => (sum + one) % PRIME, 0)
  return total < 0 ? total + PRIME : total
}

function projectionOfBlock(block: Float32Array | PackedBlock, key: number): number {
  const isSparse = 'indices' in block
  const values = isSparse ? block.values : block
  const support = block instanceof Float32Array ? supportOf(block)?.indices : undefined
  const indices = isSparse ? block.indices : support
  const length = indices?.length ?? values.length
  let total = 0
  for (let from = 0; from < length; from += EXACT) {
    const end = Math.min(length, from + EXACT)
    for (let n = from; n < end; n++) {
      const i = indices === undefined ? n : indices[n]
      const value = values[isSparse ? n : i]
      if (value !== 0) total += value * weightOf(key, i)
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

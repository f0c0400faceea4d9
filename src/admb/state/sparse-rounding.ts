/**
 * Rounding of the largest elements of a segment, where a node has a budget of elements. The others remain in the residual. Each node
 * chooses its own threshold, which is not part of the protocol.
 */
import { rounded } from '../../numeric/lattice.js'
import type { SumBlock } from '../../numeric/sums.js'

/** Magnitudes are counted by their exponents and the first seven bits of their fractions. */
const SHIFT = 16
const counts = new Uint32Array(1 << (31 - SHIFT))
const one = new Float32Array(1)
const oneBits = new Int32Array(one.buffer)

const bucketOf = (magnitude: number): number => {
  one[0] = magnitude
  return oneBits[0] >>> SHIFT
}

/** Whether the value rounds to a multiple of the step other than 0. */
const reaches = (value: number, step: number): boolean => value >= step / 2 || value < -step / 2

/** What was sent of a segment's block. `energy` and `left` are the squared norms of the block and of its residual. */
export interface SparseSegment {
  readonly nonZero: number
  readonly magnitude: number
  readonly energy: number
  readonly left: number
}

/**
 * Rounds the elements of a segment with the largest sums of value and residual, in place.
 * @param total receives the integers
 * @param step power of two
 * @param limit number of elements that may differ from 0
 * @param most largest magnitude of an element of `total`
 */
export function closeSparse(
  segment: SumBlock,
  total: SumBlock,
  residual: Float32Array,
  step: number,
  limit: number,
  most: number
): SparseSegment {
  const values = segment.write()
  const bits = new Int32Array(residual.buffer, residual.byteOffset, residual.length)
  let energy = 0
  counts.fill(0)
  for (let i = 0; i < residual.length; i++) {
    const value = Math.fround(values[i] + residual[i])
    residual[i] = value
    energy += value * value
    counts[(bits[i] & 0x7fffffff) >>> SHIFT]++
  }
  segment.clear()
  const { bucket, room } = thresholdOf(limit, bucketOf(step / 2))
  let [left, nonZero, magnitude, remaining] = [energy, 0, 0, room]
  for (let i = 0; limit > 0 && i < residual.length; i++) {
    const at = (bits[i] & 0x7fffffff) >>> SHIFT
    if (at < bucket) continue
    const value = residual[i]
    if (!reaches(value, step) || (at === bucket && remaining-- <= 0)) continue
    const integer = rounded(value, step)
    if (Math.abs(total.values[i] + integer) > most) continue
    segment.set(i, integer * step)
    residual[i] = value - segment.values[i]
    total.add(i, integer)
    nonZero++
    magnitude += Math.abs(integer)
    left += residual[i] * residual[i] - value * value
  }
  return { nonZero, magnitude, energy, left }
}

/** The bucket of the smallest magnitudes that are sent, `least` or a later one, and how many of its elements are. */
function thresholdOf(limit: number, least: number): { readonly bucket: number; readonly room: number } {
  let room = Math.max(0, limit)
  let bucket = bucketOf(Number.POSITIVE_INFINITY)
  while (bucket >= least && counts[bucket] <= room) room -= counts[bucket--]
  return { bucket: Math.max(bucket, least), room: bucket < least ? Number.POSITIVE_INFINITY : room }
}

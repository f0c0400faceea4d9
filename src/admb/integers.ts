/**
 * Coding of integer blocks, most of whose elements are 0 or small. A block is divided into chunks, each of them all zero, dense, or
 * sparse, in Rice codes with the parameters that fit it. The format is specified in `docs/protocol.md`.
 */
import { clearBlock, dropSupport, supportOf } from '../base/support.js'
import { BitReader } from './bit-reader.js'
import { BitWriter } from './bit-writer.js'
import { zigzag } from './rice.js'

/** Logarithms of chunk lengths: the long chunks are for blocks with few non-zero elements. */
const SHORT_CHUNK = 8
const LONG_CHUNK = 16
const LONG_CHUNK_DENSITY = 1 / 32

/** Heads of chunks. A dense chunk has 1 + k; a sparse one SPARSE + 8·(k of gaps) + (k of magnitudes). */
const ZERO = 0
const SPARSE = 128
const MAX_DENSE_K = 24
const MAX_GAP_K = 15
const MAX_MAGNITUDE_K = 7

type Integers = Float32Array | Int32Array

/** Bytes that an element takes at most: a gap and a magnitude with escapes, and a sign. */
const MAX_BYTES = 13

/** The number of non-zero elements and the sum of zigzag codes of each short chunk. */
class ChunkStatistics {
  readonly #nonZero: Int32Array
  readonly #sums: Float64Array

  constructor(readonly length: number) {
    this.#nonZero = new Int32Array(length)
    this.#sums = new Float64Array(length)
  }

  /** @returns number of all non-zero elements */
  add(block: Integers, chunks: number): number {
    let all = 0
    for (let chunk = 0; chunk < chunks; chunk++) {
      const end = Math.min(block.length, (chunk + 1) << SHORT_CHUNK)
      const from = chunk << SHORT_CHUNK
      let nonZero = 0
      let sum = 0
      let bits = 0
      for (let i = from; i < end; i++) {
        const value = block[i] | 0
        const code = zigzag(value)
        nonZero += isNonZero(value)
        sum = (sum + code) | 0
        bits |= code
      }
      this.#nonZero[chunk] = nonZero
      // Sums of 32-bit integers take less time, and rarely overflow.
      this.#sums[chunk] = bits >>> (31 - SHORT_CHUNK) === 0 ? sum : sumOf(block, from, end)
      all += nonZero
    }
    return all
  }

  /** The totals of chunks [from, to). */
  of(from: number, to: number): { readonly nonZero: number; readonly sum: number } {
    let nonZero = 0
    let sum = 0
    for (let chunk = from; chunk < to; chunk++) {
      nonZero += this.#nonZero[chunk]
      sum += this.#sums[chunk]
    }
    return { nonZero, sum }
  }
}

function sumOf(block: Integers, from: number, to: number): number {
  let sum = 0
  for (let i = from; i < to; i++) sum += zigzag(block[i] | 0)
  return sum
}

/** Reused, because allocating memory takes longer than the code. */
let scratch = new ArrayBuffer(1 << 12)
let statistics = new ChunkStatistics(1)
const positions = new Int32Array((1 << LONG_CHUNK) + 1)

/** @param block integers of magnitude 2^28 at most */
export function encodeIntegers(block: Integers): Uint8Array {
  const bits = new BitWriter(scratch)
  const indices = block instanceof Float32Array ? supportOf(block)?.indices : undefined
  if (indices !== undefined && indices.length < block.length * LONG_CHUNK_DENSITY) encodeSparse(block, indices, bits)
  else encodeAll(block, bits)
  const bytes = bits.finish()
  scratch = bits.buffer
  return bytes
}

function encodeAll(block: Integers, bits: BitWriter): void {
  const chunks = Math.ceil(block.length / (1 << SHORT_CHUNK))
  if (statistics.length < chunks) statistics = new ChunkStatistics(chunks)
  const nonZero = statistics.add(block, chunks)
  const log = nonZero < block.length * LONG_CHUNK_DENSITY ? LONG_CHUNK : SHORT_CHUNK
  bits.put(log, 8)
  for (let from = 0; from < block.length; from += 1 << log) {
    const to = Math.min(block.length, from + (1 << log))
    const { nonZero, sum } = statistics.of(from >>> SHORT_CHUNK, Math.ceil(to / (1 << SHORT_CHUNK)))
    const coding = codingOf(to - from, nonZero, sum, log)
    if (coding.dense === undefined && nonZero > 0) findPositions(block, from, to)
    writeChunk(block, from, to, nonZero, coding, log, bits)
  }
}

/** Chunks in a time that depends on the number of non-zero elements. @param indices of these and possibly of others */
function encodeSparse(block: Integers, indices: Int32Array, bits: BitWriter): void {
  bits.put(LONG_CHUNK, 8)
  let next = 0
  for (let from = 0; from < block.length; from += 1 << LONG_CHUNK) {
    const to = Math.min(block.length, from + (1 << LONG_CHUNK))
    let nonZero = 0
    let sum = 0
    for (; next < indices.length && indices[next] < to; next++) {
      const value = block[indices[next]] | 0
      positions[nonZero] = indices[next] - from
      nonZero += isNonZero(value)
      sum += zigzag(value)
    }
    writeChunk(block, from, to, nonZero, codingOf(to - from, nonZero, sum, LONG_CHUNK), LONG_CHUNK, bits)
  }
}

/** Without a branch that depends on data. */
function findPositions(block: Integers, from: number, to: number): void {
  let count = 0
  for (let i = from; i < to; i++) {
    positions[count] = i - from
    count += isNonZero(block[i] | 0)
  }
}

/** How a chunk is coded: `dense` is the parameter of dense chunks. */
interface Coding {
  readonly head: number
  readonly dense?: number
  readonly gap: number
  readonly magnitude: number
}

/** @param sum of the zigzag codes */
function codingOf(length: number, nonZero: number, sum: number, log: number): Coding {
  if (nonZero === 0) return { head: ZERO, gap: 0, magnitude: 0 }
  const dense = parameterFor(length, sum, MAX_DENSE_K)
  const gap = parameterFor(nonZero, length - nonZero, MAX_GAP_K)
  const magnitude = parameterFor(nonZero, sum / 2 - nonZero, MAX_MAGNITUDE_K)
  const sparseBits =
    log + 1 + nonZero + riceBits(nonZero, length - nonZero, gap) + riceBits(nonZero, sum / 2 - nonZero, magnitude)
  if (riceBits(length, sum, dense) <= sparseBits) return { head: 1 + dense, dense, gap, magnitude }
  return { head: SPARSE | (gap << 3) | magnitude, gap, magnitude }
}

/** Writes elements [from, to), of which those at `positions` are not 0. */
function writeChunk(
  block: Integers,
  from: number,
  to: number,
  nonZero: number,
  coding: Coding,
  log: number,
  bits: BitWriter
): void {
  bits.reserve(MAX_BYTES * (coding.dense === undefined ? nonZero : to - from) + 8)
  bits.put(coding.head, 8)
  if (coding.dense !== undefined) bits.dense(block, from, to, coding.dense)
  else if (nonZero > 0) {
    bits.put(nonZero, log + 1)
    bits.sparse(block, from, positions, nonZero, coding.gap, coding.magnitude)
  }
}

/**
 * Decodes a block.
 * @param into receives the integers; its length is that of the block
 * @param at offset of the first byte
 * @param end offset after the last byte that may be read
 * @returns offset after the block
 * @throws RangeError
 */
export function decodeIntegers(bytes: Uint8Array, at: number, end: number, into: Float32Array): number {
  const log = at < end ? bytes[at] : 0
  if (log !== SHORT_CHUNK && log !== LONG_CHUNK) throw new RangeError('unknown length of chunks')
  clearBlock(into)
  // It has too many elements for a support to be of use.
  if (log === SHORT_CHUNK) dropSupport(into)
  const bits = new BitReader(bytes, at + 1, end)
  for (let from = 0; from < into.length; from += 1 << log) {
    decodeChunk(into, from, Math.min(into.length, from + (1 << log)), log, bits)
  }
  return bits.finish()
}

function decodeChunk(into: Float32Array, from: number, to: number, log: number, bits: BitReader): void {
  const head = bits.get(8)
  if (head === ZERO) return
  if (head < SPARSE) {
    if (head > 1 + MAX_DENSE_K) throw new RangeError(`unknown chunk ${head}`)
    bits.dense(into, from, to, head - 1)
    dropSupport(into)
    return
  }
  const gap = (head >> 3) & MAX_GAP_K
  const magnitude = head & MAX_MAGNITUDE_K
  const nonZero = bits.get(log + 1)
  bits.sparse(into, from, to, nonZero, gap, magnitude)
}

/** 1 or 0, without a branch that depends on data. */
function isNonZero(value: number): number {
  return (value | -value) >>> 31
}

/** Approximate number of bits of `count` numbers with this sum: the low bits take half away from each quotient. */
function riceBits(count: number, sum: number, k: number): number {
  const scale = 1 << k
  return count * (k + 1) + Math.max(0, sum / scale - 0.5 * count * (1 - 1 / scale))
}

/** The better of the two parameters next to the logarithm of the mean. */
function parameterFor(count: number, sum: number, most: number): number {
  const k = sum > count ? 31 - Math.clz32(sum / count) : 0
  return Math.min(most, k > 0 && riceBits(count, sum, k - 1) < riceBits(count, sum, k) ? k - 1 : k)
}

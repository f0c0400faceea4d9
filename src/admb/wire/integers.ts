/**
 * Coding of integer blocks, most of whose elements are 0 or small. A block is divided into chunks,
 * each of them all zero, dense, or sparse, in Rice codes with the parameters that fit it. The
 * format is specified in `docs/reference/protocol.md`.
 */
import type { SumBlock } from '../../numeric/sums.js'
import { BitReader } from './bits.js'
import { zigzag } from './rice.js'
import { RiceWriter } from './rice-writer.js'

/** Logarithms of chunk lengths: long chunks are for blocks with few non-zero elements, or where their density hardly varies. */
const SHORT_CHUNK = 8
const LONG_CHUNK = 16
const LONG = 1 << LONG_CHUNK
const LONG_CHUNK_DENSITY = 1 / 32
const SHORT_CHUNK_DENSITY = 1 / 4
const HEAD_BITS = 8

/** Heads of chunks: 1 + k if dense; SPARSE + 8·(k of gaps) + (k of magnitudes) if sparse. */
const ZERO = 0
const SPARSE = 128
const MAX_DENSE_K = 24
const MAX_GAP_K = 15
const MAX_MAGNITUDE_K = 7

/** The shared writer, created at first use, because most processes never need it. */
let writer: RiceWriter | undefined

/** Encodes a block. @param block integers of magnitude 2^28 at most */
export function encodeIntegers(sum: SumBlock): Uint8Array {
  writer ??= new RiceWriter()
  writer.begin()
  const { indices } = sum
  const block = sum.read()
  if (indices !== undefined && indices.length < block.length * LONG_CHUNK_DENSITY) encodeSparse(block, indices, writer)
  else encodeAll(block, writer)
  return writer.finish()
}

function encodeAll(block: Float32Array, writer: RiceWriter): void {
  const log = chunkLengthOf(block, writer)
  writer.put(log, 8)
  for (let from = 0; from < block.length; from += LONG) {
    const elements = block.subarray(from, from + LONG)
    writer.load(elements)
    writer.flush()
    for (let at = 0; at < elements.length; at += 1 << log) {
      const count = Math.min(elements.length - at, 1 << log)
      const { nonZero, sum } = writer.measure(at, count)
      const coding = codingOf(count, nonZero, sum, log)
      if (coding.dense === undefined && nonZero > 0) writer.gather(at, count)
      writeChunk(at, count, nonZero, coding, log, writer)
    }
  }
}

/** The length of chunks that takes fewer bytes, where neither many nor few elements differ from 0. */
function chunkLengthOf(block: Float32Array, writer: RiceWriter): number {
  let left = block.length * SHORT_CHUNK_DENSITY
  let difference = 0
  for (let from = 0; from < block.length && left > 0; from += LONG) {
    const elements = block.subarray(from, from + LONG)
    writer.load(elements)
    let [allNonZero, allSum] = [0, 0]
    for (let at = 0; at < elements.length; at += 1 << SHORT_CHUNK) {
      const count = Math.min(elements.length - at, 1 << SHORT_CHUNK)
      const { nonZero, sum } = writer.measure(at, count)
      difference -= HEAD_BITS + codingOf(count, nonZero, sum, SHORT_CHUNK).bits
      allNonZero += nonZero
      allSum += sum
    }
    difference += HEAD_BITS + codingOf(elements.length, allNonZero, allSum, LONG_CHUNK).bits
    left -= allNonZero
  }
  if (left <= 0) return SHORT_CHUNK
  const isSparse = left > block.length * (SHORT_CHUNK_DENSITY - LONG_CHUNK_DENSITY)
  return isSparse || difference <= 0 ? LONG_CHUNK : SHORT_CHUNK
}

/**
 * Chunks in a time that depends on the number of non-zero elements.
 * @param indices of these and possibly of others
 */
function encodeSparse(block: Float32Array, indices: Int32Array, writer: RiceWriter): void {
  const { codes, positions } = writer
  writer.put(LONG_CHUNK, 8)
  let next = 0
  for (let from = 0; from < block.length; from += LONG) {
    const to = Math.min(block.length, from + LONG)
    let nonZero = 0
    let sum = 0
    for (; next < indices.length && indices[next] < to; next++) {
      const value = block[indices[next]]
      if (value === 0) continue
      codes[nonZero] = zigzag(value)
      positions[nonZero++] = indices[next] - from
      sum += zigzag(value)
    }
    const coding = codingOf(to - from, nonZero, sum, LONG_CHUNK)
    if (coding.dense !== undefined) {
      writer.load(block.subarray(from, to))
      writer.measure(0, to - from)
    }
    writer.flush()
    writeChunk(0, to - from, nonZero, coding, LONG_CHUNK, writer)
  }
}

/** Coding of a chunk. `dense` is the parameter of dense chunks. */
interface Coding {
  readonly head: number
  /** Approximate bits after the head. */
  readonly bits: number
  readonly dense?: number
  readonly gap: number
  readonly magnitude: number
}

/** @param sum of the zigzag codes */
function codingOf(length: number, nonZero: number, sum: number, log: number): Coding {
  if (nonZero === 0) return { head: ZERO, bits: 0, gap: 0, magnitude: 0 }
  const dense = parameterFor(length, sum, MAX_DENSE_K)
  const gap = parameterFor(nonZero, length - nonZero, MAX_GAP_K)
  const magnitude = parameterFor(nonZero, sum / 2 - nonZero, MAX_MAGNITUDE_K)
  const sparseBits =
    log + 1 + nonZero + riceBits(nonZero, length - nonZero, gap) + riceBits(nonZero, sum / 2 - nonZero, magnitude)
  const denseBits = riceBits(length, sum, dense)
  if (denseBits <= sparseBits) return { head: 1 + dense, bits: denseBits, dense, gap, magnitude }
  return { head: SPARSE | (gap << 3) | magnitude, bits: sparseBits, gap, magnitude }
}

/**
 * Writes a chunk whose codes begin at an element of the writer: all of them, or those of the
 * `nonZero` elements.
 */
function writeChunk(
  from: number,
  count: number,
  nonZero: number,
  { head, dense, gap, magnitude }: Coding,
  log: number,
  writer: RiceWriter
): void {
  writer.put(head, 8)
  if (dense !== undefined) writer.dense(from, count, dense)
  else if (nonZero > 0) {
    writer.put(nonZero, log + 1)
    writer.sparse(from, nonZero, gap, magnitude)
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
export function decodeIntegers(bytes: Uint8Array, at: number, end: number, into: SumBlock): number {
  const log = at < end ? bytes[at] : 0
  if (log !== SHORT_CHUNK && log !== LONG_CHUNK) throw new RangeError('unknown length of chunks')
  // Blocks with short chunks have too many elements for a support to be of use.
  if (log === LONG_CHUNK) into.clear()
  else into.write()
  const bits = new BitReader(bytes, at + 1, end)
  for (let from = 0; from < into.length; from += 1 << log) {
    decodeChunk(into, from, Math.min(into.length, from + (1 << log)), log, bits)
  }
  return bits.finish()
}

function decodeChunk(into: SumBlock, from: number, to: number, log: number, bits: BitReader): void {
  const head = bits.get(8)
  if (log === SHORT_CHUNK && (head === ZERO || head >= SPARSE)) into.write().fill(0, from, to)
  if (head === ZERO) return
  if (head < SPARSE) {
    if (head > 1 + MAX_DENSE_K) throw new RangeError(`unknown chunk ${head}`)
    bits.dense(into.write(), from, to, head - 1)
    return
  }
  const gap = (head >> 3) & MAX_GAP_K
  const magnitude = head & MAX_MAGNITUDE_K
  const nonZero = bits.get(log + 1)
  bits.sparse(into, from, to, nonZero, gap, magnitude)
}

/** Approximate bits of `count` numbers with this sum. The low bits halve each quotient. */
function riceBits(count: number, sum: number, k: number): number {
  const scale = 1 << k
  return count * (k + 1) + Math.max(0, sum / scale - 0.5 * count * (1 - 1 / scale))
}

/** The better of the two parameters next to the logarithm of the mean. */
function parameterFor(count: number, sum: number, max: number): number {
  const k = sum > count ? 31 - Math.clz32(sum / count) : 0
  return Math.min(max, k > 0 && riceBits(count, sum, k - 1) < riceBits(count, sum, k) ? k - 1 : k)
}

/**
 * Coding of integer blocks, most of whose elements are 0 or small. A block is divided into chunks, each of them all zero, dense, or
 * sparse, in Rice codes with the parameters that fit it. The format is specified in `docs/protocol.md`.
 */
import { clearBlock, type Support, supportOf } from '../base/support.js'
import { BitReader, BitWriter, zigzag } from './rice.js'

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

let scratch = new Uint8Array(1 << 12)

/** @param block integers of magnitude 2^28 at most */
export function encodeIntegers(block: Float32Array | Int32Array): Uint8Array {
  if (block instanceof Float32Array) {
    const indices = supportOf(block)?.indices
    const isSparse = indices !== undefined && indices.length < block.length * LONG_CHUNK_DENSITY
    return isSparse ? encodeSparse(block, indices) : encodeIntegers(new Int32Array(block))
  }
  if (scratch.length < 8 * block.length + 64) scratch = new Uint8Array(8 * block.length + 64)
  let nonZero = 0
  for (let i = 0; i < block.length; i++) nonZero += isNonZero(block[i])
  const log = nonZero < block.length * LONG_CHUNK_DENSITY ? LONG_CHUNK : SHORT_CHUNK
  scratch[0] = log
  const bits = new BitWriter(scratch, 1)
  for (let from = 0; from < block.length; from += 1 << log) {
    encodeChunk(block, from, Math.min(block.length, from + (1 << log)), log, bits)
  }
  return scratch.slice(0, bits.finish())
}

/** The same bytes in a time that depends on the number of non-zero elements. @param indices of these and possibly of others */
function encodeSparse(block: Float32Array, indices: Int32Array): Uint8Array {
  const chunks = Math.ceil(block.length / 2 ** LONG_CHUNK)
  const most = 16 * indices.length + 2 * chunks + 2 ** (LONG_CHUNK + 3)
  if (scratch.length < most) scratch = new Uint8Array(most)
  scratch[0] = LONG_CHUNK
  const bits = new BitWriter(scratch, 1)
  let first = 0
  for (let from = 0; from < block.length; from += 1 << LONG_CHUNK) {
    const to = Math.min(block.length, from + (1 << LONG_CHUNK))
    let end = first
    while (end < indices.length && indices[end] < to) end++
    const some = indices.subarray(first, end).filter(i => block[i] !== 0)
    let sum = 0
    for (let n = 0; n < some.length; n++) sum += zigzag(block[some[n]])
    const coding = codingOf(to - from, some.length, sum, LONG_CHUNK)
    bits.put(coding.head, 8)
    if (coding.dense !== undefined) bits.dense(new Int32Array(block.subarray(from, to)), 0, to - from, coding.dense)
    else if (some.length > 0) {
      bits.put(some.length, LONG_CHUNK + 1)
      for (let n = 0, next = from; n < some.length; n++) {
        writeElement(bits, some[n] - next, block[some[n]], coding)
        next = some[n] + 1
      }
    }
    first = end
  }
  return scratch.slice(0, bits.finish())
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

function encodeChunk(values: Int32Array, from: number, to: number, log: number, bits: BitWriter): void {
  const length = to - from
  let nonZero = 0
  let sum = 0
  for (let i = from; i < to; i++) {
    nonZero += isNonZero(values[i])
    sum += zigzag(values[i])
  }
  const coding = codingOf(length, nonZero, sum, log)
  bits.put(coding.head, 8)
  if (coding.dense !== undefined) bits.dense(values, from, to, coding.dense)
  else if (nonZero > 0) {
    bits.put(nonZero, log + 1)
    let next = from
    for (let i = from; i < to; i++) {
      if (values[i] === 0) continue
      writeElement(bits, i - next, values[i], coding)
      next = i + 1
    }
  }
}

function writeElement(bits: BitWriter, zeros: number, value: number, { gap, magnitude }: Coding): void {
  bits.rice(zeros, gap)
  bits.put(value < 0 ? 1 : 0, 1)
  bits.rice(Math.abs(value) - 1, magnitude)
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
  const support = supportOf(into)
  const bits = new BitReader(bytes, at + 1, end)
  for (let from = 0; from < into.length; from += 1 << log) {
    decodeChunk(into, from, Math.min(into.length, from + (1 << log)), log, bits, support)
  }
  return bits.finish()
}

function decodeChunk(
  into: Float32Array,
  from: number,
  to: number,
  log: number,
  bits: BitReader,
  support: Support | undefined
): void {
  const head = bits.get(8)
  if (head === ZERO) return
  if (head < SPARSE) {
    if (head > 1 + MAX_DENSE_K) throw new RangeError(`unknown chunk ${head}`)
    bits.dense(into, from, to, head - 1)
    if (support) for (let i = from; i < to; i++) if (into[i] !== 0) support.add(i)
    return
  }
  const gap = (head >> 3) & MAX_GAP_K
  const magnitude = head & MAX_MAGNITUDE_K
  const nonZero = bits.get(log + 1)
  let i = from
  for (let left = nonZero; left > 0; left--) {
    i += bits.rice(gap)
    if (i >= to) throw new RangeError('element beyond the end of its chunk')
    const isNegative = bits.get(1) === 1
    const value = bits.rice(magnitude) + 1
    support?.add(i)
    into[i++] = isNegative ? -value : value
  }
}

/** 1 or 0, without a branch that depends on data. */
function isNonZero(value: number): number {
  return (value | -value) >>> 31
}

/** Approximate number of bits of `count` numbers with this sum: the low bits take half away from each quotient. */
function riceBits(count: number, sum: number, k: number): number {
  return count * (k + 1) + Math.max(0, sum / 2 ** k - 0.5 * count * (1 - 2 ** -k))
}

/** The better of the two parameters next to the logarithm of the mean. */
function parameterFor(count: number, sum: number, most: number): number {
  const k = sum > count ? 31 - Math.clz32(sum / count) : 0
  return Math.min(most, k > 0 && riceBits(count, sum, k - 1) < riceBits(count, sum, k) ? k - 1 : k)
}

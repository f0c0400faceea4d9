/**
 * Coding of float32 blocks of predictors without loss: exponents that are close to the largest one
 * of their chunk take few bits, and zeros at the end of all fractions of a chunk take none. The
 * format is specified in `docs/reference/protocol.md`.
 */
import { BitReader, BitWriter, MAX_AT_ONCE } from './bits.js'
import { ESCAPE } from './rice.js'

/** Elements of a chunk, and bits of the number of those that are not 0, less one. */
const CHUNK = 256
const COUNT_BITS = 8
const FRACTION = 23
const MAX_GAP_K = 15
const MAX_EXPONENT_K = 7

/** Modes of a chunk. */
const ZERO = 0
const RAW = 1
const DENSE = 2
const SPARSE = 3

/** Bits of the head of a dense chunk: mode, fraction, largest exponent, k. */
const HEAD_BITS = 2 + 5 + 8 + 3
const GAP_BITS = 4
/** Maximum size of a chunk in bytes, which `writeChunk` ensures. */
const MAX_CHUNK_BYTES = 4 * CHUNK + 8

/** Scratch memory, because allocation takes longer than the code. */
let scratch = new ArrayBuffer(1 << 12)
const positions = new Int32Array(CHUNK)

/** @returns at most 4 bytes an element, 3 bits a chunk of 256 elements, and a byte */
export function encodeFloats(block: Float32Array): Uint8Array {
  const bits = new BitWriter(scratch)
  const numbers = new Int32Array(block.buffer, block.byteOffset, block.length)
  for (let from = 0; from < numbers.length; from += CHUNK) {
    bits.reserve(MAX_CHUNK_BYTES)
    writeChunk(numbers, from, Math.min(numbers.length, from + CHUNK), bits)
  }
  const bytes = bits.finish()
  scratch = bits.buffer
  return bytes
}

function exponentOf(number: number): number {
  return (number >>> FRACTION) & 255
}

/** Coding of the numbers of a chunk. */
interface Coding {
  /** Bits of the fractions. */
  readonly kept: number
  readonly largest: number
  readonly k: number
}

function writeChunk(numbers: Int32Array, from: number, to: number, bits: BitWriter): void {
  let count = 0
  let all = 0
  let largest = 0
  let sum = 0
  for (let i = from; i < to; i++) {
    const number = numbers[i]
    if (number === 0) continue
    positions[count++] = i
    all |= number
    const exponent = exponentOf(number)
    sum += exponent
    if (exponent > largest) largest = exponent
  }
  if (count === 0) {
    bits.put(ZERO, 2)
    return
  }
  const kept = FRACTION - Math.min(FRACTION, 31 - Math.clz32(all & -all))
  const k = parameterFor(count, count * largest - sum, MAX_EXPONENT_K)
  const zeros = to - from - count
  const gap = zeros === 0 ? undefined : parameterFor(count, zeros, MAX_GAP_K)
  const coding = { kept, largest, k }
  if (codedBits(numbers, from, count, coding, gap) > 2 + 32 * (to - from)) {
    writeRaw(numbers, from, to, bits)
    return
  }
  bits.put(gap === undefined ? DENSE : SPARSE, 2)
  bits.put((kept << 11) | (largest << 3) | k, HEAD_BITS - 2)
  if (gap !== undefined) bits.put(((count - 1) << GAP_BITS) | gap, COUNT_BITS + GAP_BITS)
  for (let n = 0, next = from; n < count; n++) {
    const i = positions[n]
    if (gap !== undefined) bits.rice(i - next, gap)
    next = i + 1
    writeNumber(numbers[i], coding, bits)
  }
}

/**
 * Number of bits of a chunk whose numbers at `positions` are not 0.
 * @param gap k of the numbers of zeros; undefined for none
 */
function codedBits(
  numbers: Int32Array,
  from: number,
  count: number,
  { kept, largest, k }: Coding,
  gap: number | undefined
): number {
  let length = HEAD_BITS + count * (1 + kept) + (gap === undefined ? 0 : COUNT_BITS + GAP_BITS)
  for (let n = 0, next = from; n < count; n++) {
    const i = positions[n]
    length += riceBits(largest - exponentOf(numbers[i]), k)
    if (gap !== undefined) length += riceBits(i - next, gap)
    next = i + 1
  }
  return length
}

function writeNumber(number: number, { kept, largest, k }: Coding, bits: BitWriter): void {
  const less = largest - exponentOf(number)
  const quotient = less >>> k
  const rest = ((number >>> 31) << kept) | ((number & ((1 << FRACTION) - 1)) >>> (FRACTION - kept))
  if (quotient + k + kept + 2 <= MAX_AT_ONCE && quotient < ESCAPE) {
    const code = (((2 << quotient) - 2) << k) | (less & ((1 << k) - 1))
    bits.put((code << (1 + kept)) | rest, quotient + k + kept + 2)
  } else {
    bits.rice(less, k)
    bits.put(rest, 1 + kept)
  }
}

function writeRaw(numbers: Int32Array, from: number, to: number, bits: BitWriter): void {
  bits.put(RAW, 2)
  for (let i = from; i < to; i++) {
    bits.put(numbers[i] >>> 16, 16)
    bits.put(numbers[i] & 0xffff, 16)
  }
}

/**
 * Decodes a block. The caller checks that its numbers are finite.
 * @param into receives the numbers; its length is that of the block
 * @param at offset of the first byte
 * @param end offset after the last byte that may be read
 * @returns offset after the block
 * @throws RangeError
 */
export function decodeFloats(bytes: Uint8Array, at: number, end: number, into: Float32Array): number {
  const bits = new BitReader(bytes, at, end)
  const numbers = new Int32Array(into.buffer, into.byteOffset, into.length)
  for (let from = 0; from < numbers.length; from += CHUNK) {
    readChunk(numbers, from, Math.min(numbers.length, from + CHUNK), bits)
  }
  return bits.finish()
}

function readChunk(numbers: Int32Array, from: number, to: number, bits: BitReader): void {
  const mode = bits.get(2)
  if (mode === ZERO) numbers.fill(0, from, to)
  else if (mode === RAW) for (let i = from; i < to; i++) numbers[i] = (bits.get(16) << 16) | bits.get(16)
  else {
    const kept = bits.get(5)
    if (kept > FRACTION) throw new RangeError(`fraction of ${kept} bits`)
    const largest = bits.get(8)
    const k = bits.get(3)
    if (mode === DENSE) for (let i = from; i < to; i++) numbers[i] = readNumber(kept, largest, k, bits)
    else {
      numbers.fill(0, from, to)
      const count = bits.get(COUNT_BITS) + 1
      const gap = bits.get(GAP_BITS)
      for (let n = 0, i = from; n < count; n++) {
        i += bits.rice(gap)
        if (i >= to) throw new RangeError('element beyond the end of its chunk')
        numbers[i++] = readNumber(kept, largest, k, bits)
      }
    }
  }
}

function readNumber(kept: number, largest: number, k: number, bits: BitReader): number {
  const exponent = largest - bits.rice(k)
  if (exponent < 0) throw new RangeError('exponent below 0')
  const rest = bits.get(1 + kept)
  return ((rest >>> kept) << 31) | (exponent << FRACTION) | ((rest & ((1 << kept) - 1)) << (FRACTION - kept))
}

function riceBits(value: number, k: number): number {
  const quotient = value >>> k
  return quotient >= ESCAPE ? ESCAPE + 32 : quotient + 1 + k
}

/** Nearly the best parameter for numbers with this sum. */
function parameterFor(count: number, sum: number, max: number): number {
  return Math.min(max, sum > count ? 31 - Math.clz32(sum / count) : 0)
}

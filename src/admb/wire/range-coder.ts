/**
 * Blocks with few integers that are not 0, in a range code whose probabilities adapt (Martin, "Range encoding", 1979, with the carries of
 * LZMA). It takes fewer bytes than Rice codes where elements come in clusters, and more time. The format is specified in
 * `docs/reference/protocol.md`, encoding 4.
 */
import type { SumBlock } from '../../numeric/sums.js'
import { MAX_MAGNITUDE } from './rice.js'

/** Probabilities have 12 bits. */
const BITS = 12
const ONE = 1 << BITS
/** Minimum of a range. */
const LEAST = 1 << 24
/** Bytes that an encoder holds back at the end. */
const TAIL = 4

/** Contexts: classes of gaps, their next bits, classes of magnitudes, and their next bits. */
const CLASSES = 32
const GAP_BITS = CLASSES
const MAGNITUDES = 2 * CLASSES
const MAGNITUDE_BITS = 3 * CLASSES
const CONTEXTS = 4 * CLASSES
/** Class of the largest magnitude. */
const MAX_CLASS = 28

/** State: the range, its lower end or a reader's code, a carry, and the byte that it can change. */
const RANGE = 0
const LOW = 1
const CARRY = 2
const CACHE = 3

/** ⌊log₂⌋. */
const classOf = (value: number): number => 31 - Math.clz32(value)

/** Writes numbers, or reads them. Both directions visit the same contexts, so the format is stated once. */
class RangeCoder {
  /** Probabilities of 0, and numbers of bits so far, up to 12. */
  readonly #probabilities = new Uint16Array(CONTEXTS).fill(ONE / 2)
  readonly #counts = new Uint8Array(CONTEXTS)
  /** Written bytes, or the bytes to read. */
  #bytes: Uint8Array
  #at: number
  readonly #end: number
  readonly #isReader: boolean
  /** See `RANGE`. Typed arrays keep integers of 32 bits without allocations. */
  readonly #state = Uint32Array.of(2 ** 32 - 1, 0, 0, 0)
  /** Number of bytes that a carry can still change. */
  #held = 1

  /** A reader of bytes [at, end), or a writer. */
  constructor(bytes?: Uint8Array, at = -1, end = 0) {
    this.#isReader = bytes !== undefined
    this.#bytes = bytes ?? new Uint8Array(256)
    // The first byte that is written is always 0, and is left out.
    this.#at = at
    this.#end = end
    for (let i = 0; this.#isReader && i < TAIL; i++) this.#state[LOW] = (this.#state[LOW] << 8) | this.#byte()
  }

  /** @param probability of 0, in units of 2^-shift @param given ignored by a reader @returns the bit */
  #choose(probability: number, shift: number, given: number): number {
    const state = this.#state
    const range = state[RANGE]
    const low = state[LOW]
    const bound = Math.imul(range >>> shift, probability) >>> 0
    const bit = this.#isReader ? (low < bound ? 0 : 1) : given
    if (bit === 0) state[RANGE] = bound
    else {
      state[RANGE] = range - bound
      if (this.#isReader) state[LOW] = low - bound
      else {
        state[LOW] = low + bound
        if (state[LOW] < bound) state[CARRY] = 1
      }
    }
    while (state[RANGE] < LEAST) {
      state[RANGE] <<= 8
      if (this.#isReader) state[LOW] = (state[LOW] << 8) | this.#byte()
      else this.#shift()
    }
    return bit
  }

  #bit(context: number, given: number): number {
    const probability = this.#probabilities[context]
    const bit = this.#choose(probability, BITS, given)
    const count = this.#counts[context]
    if (count < 12) this.#counts[context] = count + 1
    const rate = count < 3 ? 2 : count < 7 ? 3 : count < 12 ? 4 : 5
    this.#probabilities[context] =
      bit === 0 ? probability + ((ONE - probability) >> rate) : probability - (probability >> rate)
    return bit
  }

  #plain(given: number): number {
    return this.#choose(1, 1, given)
  }

  /** The bits of a number below its first one, which is at `top`. Only the next one has a context. */
  #low(given: number, top: number, context: number): number {
    if (top === 0) return 1
    let value = 2 + this.#bit(context + top, (given >>> (top - 1)) & 1)
    for (let i = top - 2; i >= 0; i--) value = 2 * value + this.#plain((given >>> i) & 1)
    return value
  }

  /** A number of zeros + 1. @throws RangeError if it has more than 31 bits */
  #gap(given: number): number {
    const top = classOf(given)
    let node = 1
    for (let i = 4; i >= 0; i--) node = 2 * node + this.#bit(node, (top >> i) & 1)
    const found = node - CLASSES
    if (found > 30) throw new RangeError('gap out of range')
    return this.#low(given, found, GAP_BITS)
  }

  /** An integer other than 0. @throws RangeError if its magnitude is too large */
  #element(given: number): number {
    const isNegative = this.#plain(given < 0 ? 1 : 0) === 1
    const magnitude = Math.abs(given)
    const top = classOf(magnitude)
    let found = 0
    while (this.#bit(MAGNITUDES + found, found < top ? 1 : 0) === 1)
      if (++found > MAX_CLASS) throw new RangeError('integer out of range')
    const value = this.#low(magnitude, found, MAGNITUDE_BITS)
    if (value > MAX_MAGNITUDE) throw new RangeError('integer out of range')
    return isNegative ? -value : value
  }

  /** Reads a byte. Zeros follow the end. */
  #byte(): number {
    const at = this.#at++
    if (at < this.#end) return this.#bytes[at]
    if (at >= this.#end + TAIL) throw new RangeError('truncated block')
    return 0
  }

  /** Writes the highest byte of what no carry can change any more. */
  #shift(): void {
    const state = this.#state
    if (state[LOW] < 0xff000000 || state[CARRY] === 1) {
      this.#put(state[CACHE] + state[CARRY])
      for (; this.#held > 1; this.#held--) this.#put(255 + state[CARRY])
      state[CACHE] = state[LOW] >>> 24
      state[CARRY] = 0
      this.#held = 0
    }
    this.#held++
    state[LOW] <<= 8
  }

  #put(byte: number): void {
    if (this.#at === this.#bytes.length) {
      const larger = new Uint8Array(2 * this.#at)
      larger.set(this.#bytes)
      this.#bytes = larger
    }
    if (this.#at >= 0) this.#bytes[this.#at] = byte
    this.#at++
  }

  write(block: Float32Array, indices: Int32Array | undefined): Uint8Array {
    const length = indices?.length ?? block.length
    let next = 0
    for (let n = 0; n < length; n++) {
      const i = indices === undefined ? n : indices[n]
      if (block[i] === 0) continue
      this.#gap(i - next + 1)
      this.#element(block[i])
      next = i + 1
    }
    for (let i = 0; i <= TAIL; i++) this.#shift()
    let end = this.#at
    for (let i = 0; i < TAIL && this.#bytes[end - 1] === 0; i++) end--
    return this.#bytes.slice(0, end)
  }

  read(into: SumBlock, count: number): void {
    into.clear()
    let next = 0
    for (let n = 0; n < count; n++) {
      next += this.#gap(1)
      if (next > into.length) throw new RangeError('element beyond the end of the block')
      into.set(next - 1, this.#element(1))
    }
    if (this.#at < this.#end) throw new RangeError('bytes after the last element')
  }
}

/** Encodes a block. @param sum integers of magnitude 2^28 at most */
export function encodeClustered(sum: SumBlock): Uint8Array {
  return new RangeCoder().write(sum.read(), sum.indices)
}

/**
 * Decodes a block.
 * @param bytes contain the block in [at, end)
 * @param count number of elements that are not 0
 * @param into receives the integers; its length is that of the block
 * @throws RangeError if the bytes do not encode `count` elements
 */
export function decodeClustered(bytes: Uint8Array, at: number, end: number, count: number, into: SumBlock): void {
  new RangeCoder(bytes, at, end).read(into, count)
}

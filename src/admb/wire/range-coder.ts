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

/** ⌊log₂⌋. */
const classOf = (value: number): number => 31 - Math.clz32(value)

/** Writes or reads numbers. Both directions visit the same contexts, so the format is stated once. */
abstract class RangeCoder {
  /** Probabilities of 0, and numbers of bits so far, up to 12. */
  readonly #probabilities = new Uint16Array(CONTEXTS).fill(ONE / 2)
  readonly #counts = new Uint8Array(CONTEXTS)

  /** @param probability of 0, in units of 2^-shift @param bit ignored by a reader @returns the bit */
  protected abstract choose(probability: number, shift: number, bit: number): number

  #bit(context: number, given: number): number {
    const probability = this.#probabilities[context]
    const bit = this.choose(probability, BITS, given)
    const count = this.#counts[context]
    if (count < 12) this.#counts[context] = count + 1
    const rate = count < 3 ? 2 : count < 7 ? 3 : count < 12 ? 4 : 5
    this.#probabilities[context] =
      bit === 0 ? probability + ((ONE - probability) >> rate) : probability - (probability >> rate)
    return bit
  }

  #plain(given: number): number {
    return this.choose(1, 1, given)
  }

  /** The bits of a number below its first one, which is at `top`. Only the next one has a context. */
  #low(given: number, top: number, context: number): number {
    if (top === 0) return 1
    let value = 2 + this.#bit(context + top, (given >>> (top - 1)) & 1)
    for (let i = top - 2; i >= 0; i--) value = 2 * value + this.#plain((given >>> i) & 1)
    return value
  }

  /** A number of zeros + 1. @throws RangeError if it has more than 31 bits */
  protected gap(given: number): number {
    const top = classOf(given)
    let node = 1
    for (let i = 4; i >= 0; i--) node = 2 * node + this.#bit(node, (top >> i) & 1)
    const found = node - CLASSES
    if (found > 30) throw new RangeError('gap out of range')
    return this.#low(given, found, GAP_BITS)
  }

  /** An integer other than 0. @throws RangeError if its magnitude is too large */
  protected element(given: number): number {
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
}

class RangeEncoder extends RangeCoder {
  #range = 2 ** 32 - 1
  #low = 0
  #cache = 0
  /** Number of bytes that a carry can still change. */
  #held = 1
  #bytes = new Uint8Array(256)
  /** Number of bytes without the first one, which is always 0. */
  #length = -1

  protected choose(probability: number, shift: number, bit: number): number {
    const bound = (this.#range >>> shift) * probability
    if (bit === 0) this.#range = bound
    else {
      this.#low += bound
      this.#range -= bound
    }
    while (this.#range < LEAST) {
      this.#range *= 256
      this.#shift()
    }
    return bit
  }

  #shift(): void {
    if (this.#low < 0xff000000 || this.#low >= 2 ** 32) {
      const carry = this.#low >= 2 ** 32 ? 1 : 0
      this.#put(this.#cache + carry)
      for (; this.#held > 1; this.#held--) this.#put(255 + carry)
      this.#cache = Math.floor(this.#low / LEAST) & 255
      this.#held = 0
    }
    this.#held++
    this.#low = (this.#low % LEAST) * 256
  }

  #put(byte: number): void {
    if (this.#length === this.#bytes.length) {
      const larger = new Uint8Array(2 * this.#length)
      larger.set(this.#bytes)
      this.#bytes = larger
    }
    if (this.#length >= 0) this.#bytes[this.#length] = byte
    this.#length++
  }

  encode(block: Float32Array, indices: Int32Array | undefined): Uint8Array {
    let next = 0
    const add = (i: number) => {
      if (block[i] === 0) return
      this.gap(i - next + 1)
      this.element(block[i])
      next = i + 1
    }
    if (indices === undefined) for (let i = 0; i < block.length; i++) add(i)
    else for (let n = 0; n < indices.length; n++) add(indices[n])
    for (let i = 0; i <= TAIL; i++) this.#shift()
    let length = this.#length
    for (let i = 0; i < TAIL && this.#bytes[length - 1] === 0; i++) length--
    return this.#bytes.slice(0, length)
  }
}

class RangeDecoder extends RangeCoder {
  readonly #bytes: Uint8Array
  #at: number
  readonly #end: number
  #range = 2 ** 32 - 1
  #code = 0

  constructor(bytes: Uint8Array, at: number, end: number) {
    super()
    this.#bytes = bytes
    this.#at = at
    this.#end = end
    for (let i = 0; i < TAIL; i++) this.#code = this.#code * 256 + this.#byte()
  }

  /** Zeros follow the end. */
  #byte(): number {
    const at = this.#at++
    return at < this.#end ? this.#bytes[at] : 0
  }

  protected choose(probability: number, shift: number): number {
    const bound = ((this.#range >>> shift) * probability) >>> 0
    const bit = this.#code < bound ? 0 : 1
    if (bit === 0) this.#range = bound
    else {
      this.#code = (this.#code - bound) >>> 0
      this.#range = (this.#range - bound) >>> 0
    }
    while (this.#range < LEAST) {
      this.#range = (this.#range << 8) >>> 0
      this.#code = ((this.#code << 8) | this.#byte()) >>> 0
      if (this.#at > this.#end + TAIL) throw new RangeError('truncated block')
    }
    return bit
  }

  decode(into: SumBlock, count: number): void {
    into.clear()
    let next = 0
    for (let n = 0; n < count; n++) {
      next += this.gap(1)
      if (next > into.length) throw new RangeError('element beyond the end of the block')
      into.set(next - 1, this.element(1))
    }
    if (this.#at < this.#end) throw new RangeError('bytes after the last element')
  }
}

/** Encodes a block. @param sum integers of magnitude 2^28 at most */
export function encodeClustered(sum: SumBlock): Uint8Array {
  return new RangeEncoder().encode(sum.read(), sum.indices)
}

/**
 * Decodes a block.
 * @param bytes contain the block in [at, end)
 * @param count number of elements that are not 0
 * @param into receives the integers; its length is that of the block
 * @throws RangeError if the bytes do not encode `count` elements
 */
export function decodeClustered(bytes: Uint8Array, at: number, end: number, count: number, into: SumBlock): void {
  new RangeDecoder(bytes, at, end).decode(into, count)
}

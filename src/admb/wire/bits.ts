/** Reads and writes bits and Rice codes. */
import type { SumBlock } from '../../numeric/sums.js'
import { ESCAPE, elementsOf, MAX_MAGNITUDE, MAX_TABLE_GAP_K, MAX_TABLE_MAGNITUDE_K, WINDOW } from './rice.js'
import { type BitSource, RiceDecoder } from './rice-decoder.js'

/** Maximum number of elements of a short chunk. */
const SHORT = 256
const BEYOND = 'element beyond the end of its chunk'

/** The shared decoder, created at first use, because most processes never need it. */
let decoder: RiceDecoder | undefined

/** Reads codes of `BitWriter` and `RiceWriter`. Zeros follow the end, which `finish` reports. */
export class BitReader implements BitSource {
  readonly key = {}
  readonly bytes: Uint8Array
  readonly end: number
  readonly #view: DataView
  #at: number
  /** Bits of the byte at `#at` that have been read, 0 to 7. */
  #offset = 0

  constructor(bytes: Uint8Array, at: number, end: number) {
    this.bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#at = at
    this.end = end
  }

  get at(): number {
    return this.#at
  }

  get offset(): number {
    return this.#offset
  }

  /** The next 25 bits or more, the first of them the most significant one, followed by zeros. */
  #next(): number {
    const at = this.#at
    if (at + 4 <= this.end) return this.#view.getInt32(at) << this.#offset
    let word = 0
    for (let i = 0; i < 4; i++) word = (word << 8) | (at + i < this.end ? this.bytes[at + i] : 0)
    return word << this.#offset
  }

  #skip(count: number): void {
    const bits = this.#offset + count
    this.#at += bits >> 3
    this.#offset = bits & 7
  }

  /** @param count 1 to 24 */
  get(count: number): number {
    const value = this.#next() >>> (32 - count)
    this.#skip(count)
    return value
  }

  /** @throws RangeError if the number has more than 30 bits */
  rice(k: number): number {
    const quotient = Math.clz32(~this.#next())
    if (quotient >= ESCAPE) {
      this.#skip(ESCAPE)
      const value = this.get(16) * 65536 + this.get(16)
      if (value > 2 * MAX_MAGNITUDE) throw new RangeError('integer out of range')
      return value
    }
    this.#skip(quotient + 1)
    const value = (quotient << k) | (k > 0 ? this.get(k) : 0)
    if (value > 2 * MAX_MAGNITUDE) throw new RangeError('integer out of range')
    return value
  }

  /**
   * Elements with zigzag codes, the inverse of `RiceWriter.dense`.
   * @throws RangeError as `rice`, and if bytes are missing
   */
  dense(into: Float32Array, from: number, to: number, k: number): void {
    decoder ??= new RiceDecoder()
    for (let i = from; i < to; ) {
      if (this.#at > this.end) throw new RangeError('truncated block')
      const count = decoder.dense(this, to - i, k)
      this.#skip(decoder.bits)
      if (count > 0) {
        into.set(decoder.elements.subarray(0, count), i)
        i += count
      } else {
        const code = this.rice(k)
        into[i++] = (code >>> 1) ^ -(code & 1)
      }
    }
  }

  /**
   * Elements as `RiceWriter.sparse` writes them.
   * @param into its elements from `from` to `to` are 0
   * @throws RangeError as `dense`, and if there are elements from `to` on
   */
  sparse(into: SumBlock, from: number, to: number, count: number, gap: number, magnitude: number): void {
    const isMixed = gap === 0 && magnitude <= MAX_TABLE_MAGNITUDE_K && to - from <= SHORT && !into.isSparse
    if (isMixed) {
      this.#mixed(into.write(), from, to, count, magnitude)
      return
    }
    const elements =
      gap <= MAX_TABLE_GAP_K && magnitude <= MAX_TABLE_MAGNITUDE_K ? elementsOf(gap, magnitude) : undefined
    const view = this.#view
    const lastByte = elements === undefined ? -1 : this.end - 4
    let i = from
    for (let left = count; left > 0; left--) {
      const element =
        elements === undefined || this.#at > lastByte
          ? 0
          : elements[(view.getInt32(this.#at) << this.#offset) >>> (32 - WINDOW)]
      let value = element >> 16
      if (element === 0) {
        i += this.rice(gap)
        value = this.#signed(magnitude)
      } else {
        i += (element >> 4) & 0xfff
        this.#skip(element & 15)
      }
      if (i >= to) throw new RangeError(BEYOND)
      into.set(i++, value)
    }
  }

  /** Variant of `sparse` for a short chunk with the parameter 0 of gaps: few elements are 0. */
  #mixed(into: Float32Array, from: number, to: number, count: number, magnitude: number): void {
    decoder ??= new RiceDecoder()
    let i = from
    for (let left = count; left > 0; left--) {
      if (this.#at > this.end) throw new RangeError('truncated block')
      const decoded = decoder.sparse(this, to - i, left, magnitude)
      this.#skip(decoder.bits)
      into.set(decoder.elements.subarray(0, decoded), i)
      i += decoded
      left = decoder.left
      if (left === 0) return
      i += this.rice(0)
      const value = this.#signed(magnitude)
      if (i >= to) throw new RangeError(BEYOND)
      into[i++] = value
    }
  }

  /** A sign, and a magnitude − 1. */
  #signed(k: number): number {
    const isNegative = this.get(1) === 1
    const magnitude = this.rice(k) + 1
    return isNegative ? -magnitude : magnitude
  }

  /** @returns offset after the last byte of which a bit was read */
  finish(): number {
    const at = this.#offset === 0 ? this.#at : this.#at + 1
    if (at > this.end) throw new RangeError('truncated block')
    if (this.#offset > 0 && (this.bytes[this.#at] << this.#offset) & 0xff) throw new RangeError('padding is not zero')
    return at
  }
}

/** Maximum number of bits written at once. They fit into a word with an incomplete byte. */
export const MAX_AT_ONCE = 24

/**
 * Writes bits, the most significant ones first. A word is written for each code, whatever is
 * complete of it: branches that depend on data would take longer.
 */
export class BitWriter {
  #bytes: Uint8Array<ArrayBuffer>
  #view: DataView
  #at = 0
  /**
   * Number of bits of the byte at `#at`, 0 to 7, and these bits, the most significant ones of a
   * word that is otherwise 0.
   */
  #offset = 0
  #rest = 0

  /** @param buffer is replaced by a longer one when it is full */
  constructor(buffer: ArrayBuffer) {
    this.#bytes = new Uint8Array(buffer)
    this.#view = new DataView(buffer)
  }

  /** Makes room for this many bytes. */
  reserve(bytes: number): void {
    if (this.#at + bytes + 4 <= this.#bytes.length) return
    const larger = new Uint8Array(Math.max(2 * this.#bytes.length, this.#at + bytes + 4))
    larger.set(this.#bytes.subarray(0, this.#at))
    this.#bytes = larger
    this.#view = new DataView(larger.buffer)
  }

  /** @param value has `count` bits, 24 at most */
  put(value: number, count: number): void {
    const end = this.#offset + count
    const word = this.#rest | (value << (32 - end))
    this.#view.setInt32(this.#at, word)
    this.#at += end >> 3
    this.#rest = word << (end & 24)
    this.#offset = end & 7
  }

  rice(value: number, k: number): void {
    const quotient = value >>> k
    if (quotient >= ESCAPE) {
      this.put((1 << ESCAPE) - 1, ESCAPE)
      this.put(value >>> 16, 16)
      this.put(value & 0xffff, 16)
    } else {
      this.put((2 << quotient) - 2, quotient + 1)
      if (k > 0) this.put(value & ((1 << k) - 1), k)
    }
  }

  /** @returns a copy of all bytes, the last one padded with zeros */
  finish(): Uint8Array<ArrayBuffer> {
    return this.#bytes.slice(0, this.#at + (this.#offset > 0 ? 1 : 0))
  }

  /** The buffer, for the next writer. */
  get buffer(): ArrayBuffer {
    return this.#bytes.buffer
  }
}

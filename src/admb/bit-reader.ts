/** Reads bits and Rice codes. */
import { supportOf } from '../base/support.js'
import {
  type Codes,
  codesOf,
  ESCAPE,
  elementsOf,
  MAX_MAGNITUDE,
  MAX_TABLE_GAP_K,
  MAX_TABLE_K,
  MAX_TABLE_MAGNITUDE_K,
  WINDOW
} from './rice.js'

/** Reads what `BitWriter` and `RiceWriter` wrote. Reading beyond the end gives zeros, which `finish` reports. */
export class BitReader {
  readonly #bytes: Uint8Array
  readonly #view: DataView
  readonly #end: number
  #at: number
  /** Bits of the byte at `#at` that have been read, 0 to 7. */
  #offset = 0

  constructor(bytes: Uint8Array, at: number, end: number) {
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#at = at
    this.#end = end
  }

  /** The next 25 bits or more, the first of them the most significant one, followed by zeros. */
  #next(): number {
    const at = this.#at
    if (at + 4 <= this.#end) return this.#view.getInt32(at) << this.#offset
    let word = 0
    for (let i = 0; i < 4; i++) word = (word << 8) | (at + i < this.#end ? this.#bytes[at + i] : 0)
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

  /** Elements with zigzag codes, the inverse of `RiceWriter.dense`. @throws RangeError as `rice` */
  dense(into: Float32Array, from: number, to: number, k: number): void {
    const codes = k <= MAX_TABLE_K ? codesOf(k) : undefined
    for (let i = from; i < to; i++) {
      i = codes ? this.#several(into, i, to, codes) : this.#long(into, i, to, k)
      if (i === to) return
      const code = this.rice(k)
      into[i] = (code >>> 1) ^ -(code & 1)
    }
  }

  /** Reads several short codes at once, as long as there are enough elements and bytes. @returns index after the last one */
  #several(into: Float32Array, from: number, to: number, { values, width, counts }: Codes): number {
    const view = this.#view
    const start = this.#at
    const lastBit = 8 * (this.#end - 4 - start) + 7
    const last = to - width
    let bit = this.#offset
    let i = from
    while (i <= last && bit <= lastBit) {
      const window = (view.getInt32(start + (bit >>> 3)) << (bit & 7)) >>> (32 - WINDOW)
      const entry = counts[window]
      const count = entry & 15
      if (count === 0) break
      const first = width * window
      into[i] = values[first]
      into[i + 1] = values[first + 1]
      into[i + 2] = values[first + 2]
      into[i + 3] = values[first + 3]
      if (width === 8) {
        into[i + 4] = values[first + 4]
        into[i + 5] = values[first + 5]
        into[i + 6] = values[first + 6]
        into[i + 7] = values[first + 7]
      }
      i += count
      bit += entry >> 4
    }
    this.#at = start + (bit >>> 3)
    this.#offset = bit & 7
    return i
  }

  /** Reads codes of up to 25 bits, two at once if both have as many together. @param k above `MAX_TABLE_K` @returns index after the last one */
  #long(into: Float32Array, from: number, to: number, k: number): number {
    const view = this.#view
    const start = this.#at
    const last = 8 * (this.#end - 4 - start) + 7
    const shift = 32 - k
    let bit = this.#offset
    let i = from
    while (i < to && bit <= last) {
      const first = view.getInt32(start + (bit >>> 3)) << (bit & 7)
      const quotient = Math.clz32(~first)
      const length = quotient + 1 + k
      if (length > 25 || quotient >= ESCAPE) break
      const code = (quotient << k) | ((first << (quotient + 1)) >>> shift)
      into[i++] = (code >>> 1) ^ -(code & 1)
      bit += length
      const second = first << length
      const next = Math.clz32(~second)
      // An escape is longer than that.
      if (length + next + 1 + k > 25 || i === to) continue
      const other = (next << k) | ((second << (next + 1)) >>> shift)
      into[i++] = (other >>> 1) ^ -(other & 1)
      bit += next + 1 + k
    }
    this.#at = start + (bit >>> 3)
    this.#offset = bit & 7
    return i
  }

  /**
   * Elements as `RiceWriter.sparse` writes them.
   * @throws RangeError as `rice`, and if there are elements from `to` on
   */
  sparse(into: Float32Array, from: number, to: number, count: number, gap: number, magnitude: number): void {
    const elements =
      gap <= MAX_TABLE_GAP_K && magnitude <= MAX_TABLE_MAGNITUDE_K ? elementsOf(gap, magnitude) : undefined
    const support = supportOf(into)
    const view = this.#view
    const lastByte = elements === undefined ? -1 : this.#end - 4
    let i = from
    for (let left = count; left > 0; left--) {
      const element =
        elements === undefined || this.#at > lastByte
          ? 0
          : elements[(view.getInt32(this.#at) << this.#offset) >>> (32 - WINDOW)]
      let value = element >> 16
      if (element === 0) {
        i += this.rice(gap)
        const isNegative = this.get(1) === 1
        value = this.rice(magnitude) + 1
        if (isNegative) value = -value
      } else {
        i += (element >> 4) & 0xfff
        this.#skip(element & 15)
      }
      if (i >= to) throw new RangeError('element beyond the end of its chunk')
      support?.add(i)
      into[i++] = value
    }
  }

  /** @returns offset after the last byte of which a bit was read */
  finish(): number {
    const at = this.#offset === 0 ? this.#at : this.#at + 1
    if (at > this.#end) throw new RangeError('truncated block')
    if (this.#offset > 0 && (this.#bytes[this.#at] << this.#offset) & 0xff) throw new RangeError('padding is not zero')
    return at
  }
}

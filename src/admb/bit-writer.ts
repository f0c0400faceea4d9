/** Writes bits and Rice codes. */
import { ESCAPE, zigzag } from './rice.js'

/** Codes of at most this many bits are written at once: with the bits of a byte that is not complete they fit into a word. */
export const MAX_AT_ONCE = 24

/**
 * Writes bits, the most significant ones first. A word is written for each code, whatever is complete of it: branches that depend on
 * data would take longer. `dense` and `sparse` do that with local variables.
 */
export class BitWriter {
  #bytes: Uint8Array<ArrayBuffer>
  #view: DataView
  #at = 0
  /** Number of bits of the byte at `#at`, 0 to 7, and these bits, the most significant ones of a word that is otherwise 0. */
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

  /** Zigzag codes of elements [from, to), two at a time. */
  dense(values: Float32Array | Int32Array, from: number, to: number, k: number): void {
    const view = this.#view
    const low = (1 << k) - 1
    let [at, offset, rest] = [this.#at, this.#offset, this.#rest]
    let i = from
    for (; i + 1 < to; i += 2) {
      const first = zigzag(values[i] | 0)
      const second = zigzag(values[i + 1] | 0)
      const q = first >>> k
      const r = second >>> k
      const secondBits = r + 1 + k
      const count = q + 1 + k + secondBits
      if (count > MAX_AT_ONCE || q >= ESCAPE || r >= ESCAPE) {
        this.#continue(at, offset, rest)
        this.rice(first, k)
        this.rice(second, k)
        at = this.#at
        offset = this.#offset
        rest = this.#rest
        continue
      }
      const code = (((((2 << q) - 2) << k) | (first & low)) << secondBits) | (((2 << r) - 2) << k) | (second & low)
      const end = offset + count
      const word = rest | (code << (32 - end))
      view.setInt32(at, word)
      at += end >> 3
      rest = word << (end & 24)
      offset = end & 7
    }
    this.#continue(at, offset, rest)
    if (i < to) this.rice(zigzag(values[i] | 0), k)
  }

  /**
   * Elements that are not 0: for each the zeros before it, its sign, and its magnitude − 1.
   * @param positions of these elements, from `from` on
   * @param gap k of the numbers of zeros
   * @param magnitude k of the magnitudes
   */
  sparse(
    values: Float32Array | Int32Array,
    from: number,
    positions: Int32Array,
    count: number,
    gap: number,
    magnitude: number
  ): void {
    const view = this.#view
    const lowGap = (1 << gap) - 1
    const lowMagnitude = (1 << magnitude) - 1
    let [at, offset, rest] = [this.#at, this.#offset, this.#rest]
    let next = 0
    for (let n = 0; n < count; n++) {
      const i = positions[n]
      const zeros = i - next
      next = i + 1
      const value = values[from + i] | 0
      const sign = value >>> 31
      const less = Math.abs(value) - 1
      const q = zeros >>> gap
      const r = less >>> magnitude
      const lessBits = r + 1 + magnitude
      const length = q + 2 + gap + lessBits
      if (length > MAX_AT_ONCE || q >= ESCAPE || r >= ESCAPE) {
        this.#continue(at, offset, rest)
        this.rice(zeros, gap)
        this.put(sign, 1)
        this.rice(less, magnitude)
        at = this.#at
        offset = this.#offset
        rest = this.#rest
        continue
      }
      const signed = (((((2 << q) - 2) << gap) | (zeros & lowGap)) << 1) | sign
      const code = (signed << lessBits) | (((2 << r) - 2) << magnitude) | (less & lowMagnitude)
      const end = offset + length
      const word = rest | (code << (32 - end))
      view.setInt32(at, word)
      at += end >> 3
      rest = word << (end & 24)
      offset = end & 7
    }
    this.#continue(at, offset, rest)
  }

  #continue(at: number, offset: number, rest: number): void {
    this.#at = at
    this.#offset = offset
    this.#rest = rest
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

/** Writes bits and Rice codes. */
import { ESCAPE } from './rice.js'

/** Codes of at most this many bits are written at once: with the bits of a byte that is not complete they fit into a word. */
export const MAX_AT_ONCE = 24

/**
 * Writes bits, the most significant ones first. A word is written for each code, whatever is complete of it: branches that depend on
 * data would take longer.
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

  /** @returns a copy of all bytes, the last one padded with zeros */
  finish(): Uint8Array<ArrayBuffer> {
    return this.#bytes.slice(0, this.#at + (this.#offset > 0 ? 1 : 0))
  }

  /** The buffer, for the next writer. */
  get buffer(): ArrayBuffer {
    return this.#bytes.buffer
  }
}

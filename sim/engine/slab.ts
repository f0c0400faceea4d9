/** Where messages are put: one large buffer for many of them, because a buffer of its own costs more than the message. */

const SIZE = 1 << 16

export class Slab {
  #buffer = new Uint8Array(SIZE)
  #used = 0

  /** Bytes that nobody else has. */
  allocate(length: number): Uint8Array {
    if (length > SIZE / 4) return new Uint8Array(length)
    if (this.#used + length > SIZE) {
      this.#buffer = new Uint8Array(SIZE)
      this.#used = 0
    }
    const at = this.#used
    this.#used += length
    return this.#buffer.subarray(at, this.#used)
  }
}

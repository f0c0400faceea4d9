/** Bits and Rice codes of integers (Rice and Plaunt, 1971). The format is specified in `docs/protocol.md`. */

/** A quotient of this many ones is followed by the number itself, in 32 bits. */
const ESCAPE = 16
/** Maximum magnitude of an element: zigzag codes fit into 31 bits. */
const MAX_MAGNITUDE = 2 ** 28

/** 0, −1, 1, −2, … as 0, 1, 2, 3, … */
export function zigzag(value: number): number {
  return (value << 1) ^ (value >> 31)
}

/** Writes bits, the most significant ones first. */
export class BitWriter {
  readonly #bytes: Uint8Array
  #at: number
  /** The last `#fill` bits are not written yet. */
  #bits = 0
  #fill = 0

  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = bytes
    this.#at = at
  }

  /** @param count 24 at most */
  put(value: number, count: number): void {
    this.#bits = (this.#bits << count) | value
    this.#fill += count
    while (this.#fill >= 8) {
      this.#fill -= 8
      this.#bytes[this.#at++] = this.#bits >>> this.#fill
    }
  }

  rice(value: number, k: number): void {
    const quotient = value >>> k
    if (quotient >= ESCAPE) {
      this.put((1 << ESCAPE) - 1, ESCAPE)
      this.put(value >>> 16, 16)
      this.put(value & 0xffff, 16)
    } else if (quotient + k < 24) {
      this.put((((2 << quotient) - 2) << k) | (value & ((1 << k) - 1)), quotient + 1 + k)
    } else {
      this.put((2 << quotient) - 2, quotient + 1)
      this.put(value & ((1 << k) - 1), k)
    }
  }

  /** Zigzag codes of the elements. Short codes are written with local variables, which is several times as fast. */
  dense(values: Int32Array, from: number, to: number, k: number): void {
    const bytes = this.#bytes
    const low = (1 << k) - 1
    let at = this.#at
    let bits = this.#bits
    let fill = this.#fill
    for (let i = from; i < to; i++) {
      const value = zigzag(values[i])
      const quotient = value >>> k
      const length = quotient + 1 + k
      if (quotient >= ESCAPE || length > 24) {
        this.#at = at
        this.#bits = bits
        this.#fill = fill
        this.rice(value, k)
        at = this.#at
        bits = this.#bits
        fill = this.#fill
        continue
      }
      bits = (bits << length) | (((2 << quotient) - 2) << k) | (value & low)
      fill += length
      while (fill >= 8) {
        fill -= 8
        bytes[at++] = bits >>> fill
      }
    }
    this.#at = at
    this.#bits = bits
    this.#fill = fill
  }

  /** Pads the last byte with zeros. @returns offset after it */
  finish(): number {
    if (this.#fill > 0) this.put(0, 8 - this.#fill)
    return this.#at
  }
}

/** Reads what `BitWriter` wrote. Reading beyond the end gives zeros, which `finish` reports. */
export class BitReader {
  readonly #bytes: Uint8Array
  readonly #end: number
  #at: number
  #bits = 0
  #fill = 0

  constructor(bytes: Uint8Array, at: number, end: number) {
    this.#bytes = bytes
    this.#at = at
    this.#end = end
  }

  #refill(): void {
    while (this.#fill <= 24) {
      this.#bits = (this.#bits << 8) | (this.#at < this.#end ? this.#bytes[this.#at] : 0)
      this.#at++
      this.#fill += 8
    }
  }

  /** @param count 24 at most */
  get(count: number): number {
    if (this.#fill < count) this.#refill()
    this.#fill -= count
    return (this.#bits >>> this.#fill) & ((1 << count) - 1)
  }

  /** @throws RangeError if the number has more than 30 bits, or the end has been passed long ago */
  rice(k: number): number {
    if (this.#fill <= 24) this.#refill()
    const quotient = Math.clz32(~(this.#bits << (32 - this.#fill)))
    if (quotient >= ESCAPE) {
      this.get(ESCAPE)
      const value = this.get(16) * 65536 + this.get(16)
      if (value > 2 * MAX_MAGNITUDE) throw new RangeError('integer out of range')
      return value
    }
    this.#fill -= quotient + 1
    const value = (quotient << k) | (k > 0 ? this.get(k) : 0)
    if (value > 2 * MAX_MAGNITUDE) throw new RangeError('integer out of range')
    return value
  }

  /** Elements with zigzag codes, the inverse of `BitWriter.dense`. @throws RangeError as `rice` */
  dense(into: Float32Array, from: number, to: number, k: number): void {
    const bytes = this.#bytes
    const end = this.#end
    const low = (1 << k) - 1
    let at = this.#at
    let bits = this.#bits
    let fill = this.#fill
    for (let i = from; i < to; i++) {
      while (fill <= 24) {
        bits = (bits << 8) | (at < end ? bytes[at] : 0)
        at++
        fill += 8
      }
      const quotient = Math.clz32(~(bits << (32 - fill)))
      const length = quotient + 1 + k
      let code: number
      if (quotient >= ESCAPE || length > fill) {
        this.#at = at
        this.#bits = bits
        this.#fill = fill
        code = this.rice(k)
        at = this.#at
        bits = this.#bits
        fill = this.#fill
      } else {
        fill -= length
        code = (quotient << k) | ((bits >>> fill) & low)
      }
      into[i] = (code >>> 1) ^ -(code & 1)
    }
    this.#at = at
    this.#bits = bits
    this.#fill = fill
  }

  /** @returns offset after the last byte of which a bit was read */
  finish(): number {
    const unread = this.#fill >> 3
    const at = this.#at - unread
    if (at > this.#end) throw new RangeError('truncated block')
    // Bits are 32-bit integers, and at most 31 of them are left.
    const padding = (this.#bits >>> (8 * unread)) & ((1 << (this.#fill & 7)) - 1)
    if (padding !== 0) throw new RangeError('padding is not zero')
    return at
  }
}

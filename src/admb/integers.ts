/**
 * Coding of integer blocks, most of whose elements are 0 or small. A block is divided into chunks, each of them all zero, dense, or
 * sparse, in Rice codes (Rice and Plaunt, 1971) with the parameters that fit it. The format is specified in `docs/protocol.md`.
 */

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

/** A quotient of so many ones is followed by the number itself, in 32 bits. */
const ESCAPE = 16
/** Bits to which the elements are limited, so that zigzag codes fit into 31. */
const MAX_MAGNITUDE = 2 ** 28

let scratch = new Uint8Array(1 << 12)

/** @param values integers of magnitude 2^28 at most */
export function encodeIntegers(values: Int32Array): Uint8Array {
  if (scratch.length < 8 * values.length + 64) scratch = new Uint8Array(8 * values.length + 64)
  let nonZero = 0
  for (let i = 0; i < values.length; i++) nonZero += isNonZero(values[i])
  const log = nonZero < values.length * LONG_CHUNK_DENSITY ? LONG_CHUNK : SHORT_CHUNK
  scratch[0] = log
  const bits = new BitWriter(scratch, 1)
  for (let from = 0; from < values.length; from += 1 << log) {
    encodeChunk(values, from, Math.min(values.length, from + (1 << log)), log, bits)
  }
  return scratch.slice(0, bits.finish())
}

function encodeChunk(values: Int32Array, from: number, to: number, log: number, bits: BitWriter): void {
  const length = to - from
  let nonZero = 0
  let sum = 0
  for (let i = from; i < to; i++) {
    nonZero += isNonZero(values[i])
    sum += zigzag(values[i])
  }
  if (nonZero === 0) {
    bits.put(ZERO, 8)
    return
  }
  const dense = parameterFor(length, sum, MAX_DENSE_K)
  const gap = parameterFor(nonZero, length - nonZero, MAX_GAP_K)
  const magnitude = parameterFor(nonZero, sum / 2 - nonZero, MAX_MAGNITUDE_K)
  const sparseBits =
    log + 1 + nonZero + riceBits(nonZero, length - nonZero, gap) + riceBits(nonZero, sum / 2 - nonZero, magnitude)
  if (riceBits(length, sum, dense) <= sparseBits) {
    bits.put(1 + dense, 8)
    bits.dense(values, from, to, dense)
    return
  }
  bits.put(SPARSE | (gap << 3) | magnitude, 8)
  bits.put(nonZero, log + 1)
  let next = from
  for (let i = from; i < to; i++) {
    const value = values[i]
    if (value === 0) continue
    bits.rice(i - next, gap)
    bits.put(value < 0 ? 1 : 0, 1)
    bits.rice(Math.abs(value) - 1, magnitude)
    next = i + 1
  }
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
  into.fill(0)
  const bits = new BitReader(bytes, at + 1, end)
  for (let from = 0; from < into.length; from += 1 << log) {
    decodeChunk(into, from, Math.min(into.length, from + (1 << log)), log, bits)
  }
  return bits.finish()
}

function decodeChunk(into: Float32Array, from: number, to: number, log: number, bits: BitReader): void {
  const head = bits.get(8)
  if (head === ZERO) return
  if (head < SPARSE) {
    if (head > 1 + MAX_DENSE_K) throw new RangeError(`unknown chunk ${head}`)
    bits.dense(into, from, to, head - 1)
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
    into[i++] = isNegative ? -value : value
  }
}

/** 1 or 0, without a branch that depends on data. */
function isNonZero(value: number): number {
  return (value | -value) >>> 31
}

/** 0, −1, 1, −2, … as 0, 1, 2, 3, … */
function zigzag(value: number): number {
  return (value << 1) ^ (value >> 31)
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

/** Writes bits, the most significant ones first. */
class BitWriter {
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
class BitReader {
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

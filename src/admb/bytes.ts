/**
 * Writing and strict reading of frames: variable-length integers, strings, float32 blocks, and a checksum over the whole.
 * The reader trusts nothing: every length is checked before anything is allocated.
 */
import type { Blocks, Layout } from '../learner/types.js'
import { checksum } from './checksum.js'
import { FrameError } from './errors.js'
import { isFiniteBlock } from './vectors.js'

const DENSE = 0
const SPARSE = 1
const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true })

const PAIRS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

export function hexOf(bytes: Uint8Array): string {
  let result = ''
  for (let i = 0; i < bytes.length; i++) result += PAIRS[bytes[i]]
  return result
}

/** Value of a lower-case hexadecimal digit's character code. */
function nibble(code: number): number {
  return code < 58 ? code - 48 : code - 87
}

/** Bytes that a dense block of that many elements takes at most, its prefix included. */
export function blockBytes(length: number): number {
  return length * 4 + 12
}

function isAscii(value: string): boolean {
  for (let i = 0; i < value.length; i++) if (value.charCodeAt(i) > 0x7f) return false
  return true
}

/** Gives a buffer of that many bytes for a finished frame. */
export type Allocate = (length: number) => Uint8Array

/** Frames are put together here and then copied out, unless they are large: allocating and clearing a buffer each costs more. */
let scratch = new Uint8Array(1 << 14)

/** One float and its bits. */
const float = new Float32Array(1)
const floatBits = new Int32Array(float.buffer)

/** Blocks up to that many elements are copied element by element, which is quicker than making a view for them. */
const SHORT_BLOCK = 64
/** Bytes of a frame for which the same holds. */
const SHORT_FRAME = 256

export class Writer {
  #bytes: Uint8Array<ArrayBuffer>
  readonly #shared: boolean
  #length = 0

  /**
   * Finish one writer before making another.
   * @param capacity bytes that will be written, about
   */
  constructor(capacity = 256) {
    this.#shared = capacity <= scratch.length
    this.#bytes = this.#shared ? scratch : new Uint8Array(capacity)
  }

  get length(): number {
    return this.#length
  }

  #reserve(count: number): number {
    const at = this.#length
    this.#length += count
    if (this.#length > this.#bytes.length) this.#grow(at)
    return at
  }

  #grow(used: number): void {
    const grown = new Uint8Array(Math.max(this.#length, this.#bytes.length * 2))
    grown.set(this.#bytes.subarray(0, used))
    this.#bytes = grown
    if (this.#shared) scratch = grown
  }

  byte(value: number): void {
    const at = this.#reserve(1)
    this.#bytes[at] = value
  }

  /** LEB128 of an integer 0 … 2^53 − 1. */
  integer(value: number): void {
    let rest = value
    while (rest >= 0x80) {
      this.byte((rest % 0x80) | 0x80)
      rest = Math.floor(rest / 0x80)
    }
    this.byte(rest)
  }

  /** An integer of either sign, small ones in one byte: 0, −1, 1, −2, … as 0, 1, 2, 3, … */
  step(value: number): void {
    this.integer(value < 0 ? -2 * value - 1 : 2 * value)
  }

  string(value: string): void {
    if (isAscii(value)) {
      this.integer(value.length)
      const at = this.#reserve(value.length)
      for (let i = 0; i < value.length; i++) this.#bytes[at + i] = value.charCodeAt(i)
      return
    }
    const encoded = encoder.encode(value)
    this.integer(encoded.length)
    this.raw(encoded)
  }

  hex(value: string): void {
    const at = this.#reserve(value.length / 2)
    for (let i = 0; i < value.length; i += 2) {
      this.#bytes[at + i / 2] = (nibble(value.charCodeAt(i)) << 4) | nibble(value.charCodeAt(i + 1))
    }
  }

  raw(bytes: Uint8Array): void {
    const at = this.#reserve(bytes.length)
    this.#bytes.set(bytes, at)
  }

  /** Each block dense, or as gaps and values of its non-zero elements where that is shorter. Bits are kept exactly. */
  blocks(blocks: Blocks): void {
    for (const block of blocks) {
      // Negative zero counts as non-zero: its bits are not.
      let nonZero = 0
      for (let i = 0; i < block.length; i++) if (block[i] !== 0 || 1 / block[i] < 0) nonZero++
      this.integer(block.length)
      if (nonZero * 6 < block.length * 4) this.#sparse(block, nonZero)
      else this.#dense(block)
    }
  }

  #sparse(block: Float32Array, nonZero: number): void {
    this.byte(SPARSE)
    this.integer(nonZero)
    let next = 0
    for (let i = 0; i < block.length; i++) {
      if (block[i] === 0 && 1 / block[i] > 0) continue
      this.integer(i - next)
      this.#float(block[i])
      next = i + 1
    }
  }

  #dense(block: Float32Array): void {
    this.byte(DENSE)
    if (block.length > SHORT_BLOCK) this.raw(new Uint8Array(block.buffer, block.byteOffset, block.byteLength))
    else for (let i = 0; i < block.length; i++) this.#float(block[i])
  }

  #float(value: number): void {
    float[0] = value
    this.#word(floatBits[0])
  }

  /** 32 bits, little-endian. */
  #word(bits: number): void {
    const at = this.#reserve(4)
    this.#bytes[at] = bits
    this.#bytes[at + 1] = bits >>> 8
    this.#bytes[at + 2] = bits >>> 16
    this.#bytes[at + 3] = bits >>> 24
  }

  /** Appends the checksum and returns the frame, in a buffer of its own unless `allocate` gives another. */
  finish(allocate?: Allocate): Uint8Array {
    this.#word(checksum(this.#bytes, this.#length))
    if (allocate === undefined) {
      return this.#shared ? this.#bytes.slice(0, this.#length) : this.#bytes.subarray(0, this.#length)
    }
    const copy = allocate(this.#length)
    if (this.#length > SHORT_FRAME) copy.set(this.#bytes.subarray(0, this.#length))
    else for (let i = 0; i < this.#length; i++) copy[i] = this.#bytes[i]
    return copy
  }
}

export class Reader {
  readonly #bytes: Uint8Array
  readonly #end: number
  #at = 0

  /** Checks the checksum. Throws FrameError. */
  constructor(bytes: Uint8Array) {
    if (bytes.length < 4) throw new FrameError('frame shorter than its checksum')
    this.#bytes = bytes
    this.#end = bytes.length - 4
    if (checksum(bytes, this.#end) !== this.#word(this.#end)) throw new FrameError('checksum does not match')
  }

  /** Bytes left before the checksum. */
  get left(): number {
    return this.#end - this.#at
  }

  #take(count: number): number {
    if (count > this.left) throw new FrameError('frame ends too early')
    const at = this.#at
    this.#at += count
    return at
  }

  /** 32 bits, little-endian. */
  #word(at: number): number {
    const bytes = this.#bytes
    return bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24)
  }

  #float(at: number): number {
    floatBits[0] = this.#word(at)
    return float[0]
  }

  byte(): number {
    return this.#bytes[this.#take(1)]
  }

  integer(limit = Number.MAX_SAFE_INTEGER): number {
    const first = this.byte()
    if (first < 0x80 && first <= limit) return first
    let value = first & 0x7f
    if (first < 0x80) throw new FrameError(`number above ${limit}`)
    let scale = 0x80
    for (;;) {
      const byte = this.byte()
      value += (byte & 0x7f) * scale
      if (value > limit) throw new FrameError(`number above ${limit}`)
      if (byte < 0x80) return value
      scale *= 0x80
      if (scale > Number.MAX_SAFE_INTEGER) throw new FrameError('number too long')
    }
  }

  /** What `Writer.step` wrote. */
  step(): number {
    const value = this.integer()
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2
  }

  /** @param limit the greatest number of bytes */
  string(limit: number): string {
    const length = this.integer(limit)
    const at = this.#take(length)
    try {
      return decoder.decode(this.#bytes.subarray(at, at + length))
    } catch {
      throw new FrameError('string is not UTF-8')
    }
  }

  hex(bytes: number): string {
    const at = this.#take(bytes)
    return hexOf(this.#bytes.subarray(at, at + bytes))
  }

  /** Reads as many bytes as `last` has into it. @returns whether they were there already */
  updateInPlace(last: Uint8Array): boolean {
    const at = this.#take(last.length)
    let isSame = true
    for (let i = 0; i < last.length; i++) {
      const byte = this.#bytes[at + i]
      if (last[i] === byte) continue
      isSame = false
      last[i] = byte
    }
    return isSame
  }

  /**
   * Blocks of exactly that layout, every element finite.
   * @param into where they are put; default new ones
   */
  blocks(
    layout: Layout,
    into: Float32Array[] = layout.blocks.map(({ length }) => new Float32Array(length))
  ): Float32Array[] {
    for (let b = 0; b < into.length; b++) this.#block(into[b], layout.blocks[b].name)
    return into
  }

  #block(block: Float32Array, name: string): void {
    const { length } = block
    const given = this.integer()
    if (given !== length) throw new FrameError(`block ${name} has ${given} elements instead of ${length}`)
    const kind = this.byte()
    if (kind === DENSE) {
      const at = this.#take(length * 4)
      if (length > SHORT_BLOCK) {
        new Uint8Array(block.buffer, block.byteOffset, block.byteLength).set(this.#bytes.subarray(at, at + length * 4))
      } else for (let i = 0; i < length; i++) block[i] = this.#float(at + 4 * i)
    } else if (kind === SPARSE) {
      block.fill(0)
      const nonZero = this.integer(length)
      let next = 0
      for (let i = 0; i < nonZero; i++) {
        next += this.integer(length)
        if (next >= length) throw new FrameError(`block ${name} has an element beyond its end`)
        block[next++] = this.#float(this.#take(4))
      }
    } else throw new FrameError(`block ${name} has the unknown encoding ${kind}`)
    if (!isFiniteBlock(block)) throw new FrameError(`block ${name} holds a number that is not finite`)
  }

  /** Throws unless everything was read. */
  finish(): void {
    if (this.left !== 0) throw new FrameError(`${this.left} bytes too many`)
  }
}

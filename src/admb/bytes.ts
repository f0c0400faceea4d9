/**
 * Writing and strict reading of frames: variable-length integers, strings, float32 blocks, and a checksum over the whole.
 * The reader trusts nothing: every length is checked before anything is allocated.
 */
import { crc32 } from 'node:zlib'
import type { Blocks, Layout } from '../learner/types.js'
import { FrameError } from './errors.js'
import { isFinite32 } from './vectors.js'

const DENSE = 0
const SPARSE = 1
const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true })

const PAIRS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** Value of a lower-case hexadecimal digit's character code. */
function nibble(code: number): number {
  return code < 58 ? code - 48 : code - 87
}

/** Bytes that a dense block of that many elements takes at most, its prefix included. */
export function blockBytes(length: number): number {
  return length * 4 + 12
}

/** Small frames are put together here and then cut out: allocating and clearing a buffer each costs more. */
let scratch = new Uint8Array(1 << 14)

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
    if (this.#length > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(this.#length, this.#bytes.length * 2))
      grown.set(this.#bytes.subarray(0, at))
      this.#bytes = grown
      if (this.#shared) scratch = grown
    }
    return at
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

  string(value: string): void {
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
      const bits = new Int32Array(block.buffer, block.byteOffset, block.length)
      let nonZero = 0
      for (let i = 0; i < bits.length; i++) if (bits[i] !== 0) nonZero++
      this.integer(block.length)
      if (nonZero * 6 < block.length * 4) {
        this.byte(SPARSE)
        this.integer(nonZero)
        let next = 0
        for (let i = 0; i < bits.length; i++) {
          if (bits[i] === 0) continue
          this.integer(i - next)
          this.#word(bits[i])
          next = i + 1
        }
      } else {
        this.byte(DENSE)
        this.raw(new Uint8Array(block.buffer, block.byteOffset, block.byteLength))
      }
    }
  }

  /** Appends the checksum and returns the frame. */
  finish(): Uint8Array {
    this.#word(crc32(this.#bytes.subarray(0, this.#length)))
    return this.#shared ? this.#bytes.slice(0, this.#length) : this.#bytes.subarray(0, this.#length)
  }

  /** 32 bits, little-endian. */
  #word(bits: number): void {
    const at = this.#reserve(4)
    this.#bytes[at] = bits
    this.#bytes[at + 1] = bits >>> 8
    this.#bytes[at + 2] = bits >>> 16
    this.#bytes[at + 3] = bits >>> 24
  }
}

export class Reader {
  readonly #bytes: Uint8Array
  readonly #view: DataView
  readonly #end: number
  #at = 0

  /** Checks the checksum. Throws FrameError. */
  constructor(bytes: Uint8Array) {
    if (bytes.length < 4) throw new FrameError('frame shorter than its checksum')
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#end = bytes.length - 4
    if (crc32(bytes.subarray(0, this.#end)) !== this.#view.getUint32(this.#end, true)) {
      throw new FrameError('checksum does not match')
    }
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

  byte(): number {
    return this.#bytes[this.#take(1)]
  }

  integer(limit = Number.MAX_SAFE_INTEGER): number {
    let value = 0
    let scale = 1
    for (;;) {
      const byte = this.byte()
      value += (byte & 0x7f) * scale
      if (value > limit) throw new FrameError(`number above ${limit}`)
      if (byte < 0x80) return value
      scale *= 0x80
      if (scale > Number.MAX_SAFE_INTEGER) throw new FrameError('number too long')
    }
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
    let result = ''
    for (let i = 0; i < bytes; i++) result += PAIRS[this.#bytes[at + i]]
    return result
  }

  /** Blocks of exactly that layout, every element finite. */
  blocks(layout: Layout): Float32Array[] {
    return layout.blocks.map(({ name, length }) => {
      const given = this.integer()
      if (given !== length) throw new FrameError(`block ${name} has ${given} elements instead of ${length}`)
      const kind = this.byte()
      if (kind === DENSE) {
        const at = this.#take(length * 4)
        const block = new Float32Array(length)
        new Uint8Array(block.buffer).set(this.#bytes.subarray(at, at + length * 4))
        requireFinite(block, name)
        return block
      }
      if (kind !== SPARSE) throw new FrameError(`block ${name} has the unknown encoding ${kind}`)
      const nonZero = this.integer(length)
      const block = new Float32Array(length)
      let next = 0
      for (let i = 0; i < nonZero; i++) {
        next += this.integer(length)
        if (next >= length) throw new FrameError(`block ${name} has an element beyond its end`)
        block[next++] = this.#view.getFloat32(this.#take(4), true)
      }
      requireFinite(block, name)
      return block
    })
  }

  /** Throws unless everything was read. */
  finish(): void {
    if (this.left !== 0) throw new FrameError(`${this.left} bytes too many`)
  }
}

function requireFinite(block: Float32Array, name: string): void {
  if (!isFinite32([block])) throw new FrameError(`block ${name} holds a number that is not finite`)
}

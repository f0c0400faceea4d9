/**
 * A growing byte writer and a bounds-checked byte reader. The frame codec (`src/admb/wire/bytes.ts`) and the overlay codec
 * (`src/overlay/codec.ts`) extend them with their own types.
 */

/** Frames are assembled in one buffer and copied out, unless they are large: allocating a buffer for each one costs more. */
const SCRATCH_BYTES = 1 << 14
/** The buffer, unless a writer is using it. */
let spare: Uint8Array | undefined

export class ByteWriter {
  protected bytes: Uint8Array
  /** Whether the buffer becomes the spare one. */
  #isScratch: boolean
  protected size = 0

  /**
   * @param capacity approximate number of bytes that will be written
   * @default 256
   */
  constructor(capacity = 256) {
    this.#isScratch = capacity <= (spare?.length ?? SCRATCH_BYTES)
    if (this.#isScratch) {
      this.bytes = spare ?? new Uint8Array(SCRATCH_BYTES)
      spare = undefined
    } else {
      this.bytes = new Uint8Array(capacity)
    }
  }

  /** Number of bytes written so far. */
  get length(): number {
    return this.size
  }

  /** Makes room for `count` bytes and returns their offset. */
  protected reserve(count: number): number {
    const at = this.size
    this.size += count
    if (this.size > this.bytes.length) this.#grow(at)
    return at
  }

  #grow(used: number): void {
    const grown = new Uint8Array(Math.max(this.size, this.bytes.length * 2))
    grown.set(this.bytes.subarray(0, used))
    this.bytes = grown
  }

  byte(value: number): void {
    const at = this.reserve(1)
    this.bytes[at] = value
  }

  /** LEB128 of an integer from 0 to 2^53 − 1. */
  uint(value: number): void {
    let rest = value
    while (rest >= 0x80) {
      this.byte((rest % 0x80) | 0x80)
      rest = Math.floor(rest / 0x80)
    }
    this.byte(rest)
  }

  raw(bytes: Uint8Array): void {
    const at = this.reserve(bytes.length)
    this.bytes.set(bytes, at)
  }

  /** One byte per character; the caller has checked that all are ASCII. */
  protected ascii(value: string): void {
    const at = this.reserve(value.length)
    for (let i = 0; i < value.length; i++) this.bytes[at + i] = value.charCodeAt(i)
  }

  /** The bytes written, in a buffer that no other writer uses, but which may be longer. */
  protected result(): Uint8Array {
    return this.#isScratch ? this.release(this.bytes.slice(0, this.size)) : this.bytes.subarray(0, this.size)
  }

  /** The bytes written, in a buffer of exactly that length. */
  protected copy(): Uint8Array {
    return this.release(this.bytes.slice(0, this.size))
  }

  /** Lets the next writer use the buffer. @param copy what was written, which this writer keeps instead */
  protected release(copy: Uint8Array): Uint8Array {
    if (this.#isScratch) spare = this.bytes
    this.#isScratch = false
    this.bytes = copy
    return copy
  }
}

/** Every length is checked before it is used. */
export class ByteReader {
  protected readonly bytes: Uint8Array
  protected readonly end: number
  protected at = 0
  protected readonly Malformed: new (
    message: string
  ) => Error

  /**
   * @param end offset after the last byte to read
   * @param Malformed class of the errors thrown for malformed input
   */
  constructor(bytes: Uint8Array, end: number, Malformed: new (message: string) => Error) {
    this.bytes = bytes
    this.end = end
    this.Malformed = Malformed
  }

  /** Number of bytes not read yet. */
  get left(): number {
    return this.end - this.at
  }

  /** Consumes `count` bytes and returns their offset. @param what the value being read, for the error message */
  protected take(count: number, what = 'frame'): number {
    const { at } = this
    if (count > this.end - at) throw new this.Malformed(`truncated ${what}`)
    this.at = at + count
    return at
  }

  byte(what?: string): number {
    return this.bytes[this.take(1, what)]
  }

  /** LEB128 of an integer from 0 to `max`, at most 8 bytes. */
  uint(max = Number.MAX_SAFE_INTEGER, what = 'integer'): number {
    const first = this.byte(what)
    if (first < 0x80 && first <= max) return first
    let value = first & 0x7f
    if (first < 0x80) throw new this.Malformed(`${what} exceeds ${max}`)
    let scale = 0x80
    for (;;) {
      const byte = this.byte(what)
      value += (byte & 0x7f) * scale
      if (value > max) throw new this.Malformed(`${what} exceeds ${max}`)
      if (byte < 0x80) return value
      scale *= 0x80
      if (scale > Number.MAX_SAFE_INTEGER) throw new this.Malformed(`${what} takes more than 8 bytes`)
    }
  }

  /** @throws an error of class `Malformed` unless all bytes were read */
  finish(): void {
    if (this.left !== 0) throw new this.Malformed(`${this.left} trailing bytes`)
  }
}

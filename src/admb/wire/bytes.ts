/**
 * Writer and strict reader of frames: variable-length integers, strings, float32 blocks, and a
 * checksum over the whole frame. The reader checks every length before it allocates memory.
 */
import { ByteReader, ByteWriter } from '../../base/bytes.js'
import { CodedError } from '../../base/errors.js'
import type { Blocks, Layout } from '../../learning/types.js'
import { countNonZero as countNonZeroOf } from '../../numeric/block-kernels.js'
import { addPacked, type PackedBlock } from '../../numeric/lattice.js'
import { isFiniteBlock } from '../../numeric/numbers.js'
import { blocksOf, type CompactBlock, forEachElement, type Sum, SumBlock } from '../../numeric/sums.js'
import { checksum } from './checksum.js'
import { decodeFloats, encodeFloats } from './floats.js'
import { decodeIntegers, encodeIntegers } from './integers.js'
import { decodeClustered, encodeClustered } from './range-coder.js'

/** A frame that violates the format, a limit or a rule of the protocol. No state has changed. */
export class FrameError extends CodedError {
  static override readonly code = 'ERR_BAD_FRAME'
}

const DENSE = 0
const SPARSE = 1
const INTEGERS = 2
const FLOATS = 3
const CLUSTERED = 4

/** A block of a sum, or its encoding from `compactBlocks`, which is shorter. */
export type SumSource = SumBlock | Uint8Array
/** A block to write. */
export type BlockSource = Float32Array | SumSource
const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true })

const HEX_PAIRS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

export function hexOf(bytes: Uint8Array): string {
  let result = ''
  for (let i = 0; i < bytes.length; i++) result += HEX_PAIRS[bytes[i]]
  return result
}

export function bytesOfHex(digits: string): Uint8Array {
  const bytes = new Uint8Array(digits.length / 2)
  for (let i = 0; i < bytes.length; i++) {
    bytes[i] = (nibble(digits.charCodeAt(2 * i)) << 4) | nibble(digits.charCodeAt(2 * i + 1))
  }
  return bytes
}

/** Value of a lower-case hexadecimal digit, given its character code. */
function nibble(code: number): number {
  return code < 58 ? code - 48 : code - 87
}

/** Upper bound on the encoded size of a block of `length` elements, in bytes. */
export function blockBytes(length: number): number {
  return length * 4 + 12
}

function isAscii(value: string): boolean {
  for (let i = 0; i < value.length; i++) if (value.charCodeAt(i) > 0x7f) return false
  return true
}

function isNonZero(value: number): boolean {
  return value !== 0 || 1 / value < 0
}

/** Negative zero counts as non-zero because its bits differ. */
function countNonZero(block: SumBlock): number {
  const { indices, values } = block
  if (indices === undefined) return countNonZeroOf(block.read(), true)
  let nonZero = 0
  for (let n = 0; n < indices.length; n++) if (isNonZero(values[indices[n]])) nonZero++
  return nonZero
}

/** Whether the sparse encoding is the shorter one. */
function isSparse(nonZero: number, length: number): boolean {
  return nonZero * 6 < length * 4
}

/** Approximate size of a block as float32 numbers, in bytes. */
export function float32Bytes(block: SumBlock): number {
  // A non-zero element of a sparse block takes a gap of a byte or more and its value.
  return Math.min(4 * block.length, 5 * countNonZero(block))
}

/** Shorter blocks in Rice codes, in bytes, are not worth a range code. */
const MIN_CLUSTERED = 32
/** A range code takes time for each element that is not 0: at most one of this many elements. */
const CLUSTERED_SHARE = 4
/** Approximate size of the numbers before a range code, in bytes. */
const CLUSTERED_HEAD = 4

/** Encodes integer blocks, or those that are sparse; the others are returned as they are. */
export function compactBlocks(sum: Sum, isLattice: boolean, isClustered?: boolean): SumSource[] {
  return sum.map(block => {
    if (isLattice) return integerBlock(block, [], isClustered)
    const nonZero = countNonZero(block)
    return isSparse(nonZero, block.length) ? new Writer().compact(block, nonZero) : block
  })
}

/**
 * Encodes the integers that remain of a block after subtracting others, block by block.
 * @param references blocks of the same length
 * @param isClustered whether in a range code where it takes fewer bytes
 */
export function integerBlock(
  block: SumBlock,
  references: readonly PackedBlock[] = [],
  isClustered = false
): Uint8Array {
  if (references.length === 0) return new Writer().integers(block, isClustered)
  const difference = SumBlock.zeros(block.length)
  difference.copy(block)
  for (const reference of references) addPacked(difference, reference, -1)
  const encoded = new Writer().integers(difference, isClustered)
  difference.recycle()
  return encoded
}

/** A sum of this layout from the result of `compactBlocks`. */
export function readCompactBlocks(blocks: readonly SumSource[], layout: Layout): Sum {
  return blocks.map((block, b) =>
    block instanceof Uint8Array ? new Reader(block, block.length).sum({ blocks: [layout.blocks[b]] })[0] : block
  )
}

/** Upper bound on the encoded size of a block, in bytes. */
export function blockSize(block: BlockSource): number {
  return block instanceof Uint8Array ? block.length : blockBytes(block.length)
}

/** Returns a buffer of `length` bytes for a finished frame. */
export type Allocate = (length: number) => Uint8Array

/** One float and its bits. */
const float = new Float32Array(1)
const floatBits = new Int32Array(float.buffer)

/** Maximum length of blocks that are copied by element, which is faster than creating a view. */
const SHORT_BLOCK = 64
/** Maximum size of a finished frame that is copied byte by byte, in bytes. */
const SHORT_FRAME = 256
/** Strings of at most this many bytes are decoded here. */
const SHORT_STRING = 16
/** Blocks of predictors with as many elements are coded. */
const MIN_CODED = 32

export class Writer extends ByteWriter {
  /** A signed integer, zigzag-encoded: 0, −1, 1, −2, … as 0, 1, 2, 3, … */
  signed(value: number): void {
    this.uint(value < 0 ? -2 * value - 1 : 2 * value)
  }

  string(value: string): void {
    if (isAscii(value)) {
      this.uint(value.length)
      this.ascii(value)
      return
    }
    const encoded = encoder.encode(value)
    this.uint(encoded.length)
    this.raw(encoded)
  }

  hex(value: string): void {
    const at = this.reserve(value.length / 2)
    for (let i = 0; i < value.length; i += 2) {
      this.bytes[at + i / 2] = (nibble(value.charCodeAt(i)) << 4) | nibble(value.charCodeAt(i + 1))
    }
  }

  /**
   * Each block dense, or as gaps and values of its non-zero elements if that is shorter. All bits
   * are preserved.
   * @param isCompact whether long blocks are coded in fewer bytes, which takes longer @default
   * false
   */
  blocks(blocks: readonly BlockSource[], isCompact = false): void {
    for (const source of blocks) {
      if (source instanceof Uint8Array) {
        this.raw(source)
        continue
      }
      const block = source instanceof SumBlock ? source : new SumBlock(source)
      if (isCompact && block.length >= MIN_CODED) {
        this.uint(block.length)
        this.byte(FLOATS)
        this.raw(encodeFloats(block.read()))
        continue
      }
      const nonZero = countNonZero(block)
      this.uint(block.length)
      if (isSparse(nonZero, block.length)) this.#sparse(block, nonZero)
      else this.#dense(block.read())
    }
  }

  /** The encoding of a block of which `isSparse` holds, in a buffer of its own. */
  compact(block: SumBlock, nonZero: number): Uint8Array {
    this.uint(block.length)
    this.#sparse(block, nonZero)
    return this.#kept()
  }

  /** The encoding of an integer block, in a buffer of its own. */
  integers(block: SumBlock, isClustered: boolean): Uint8Array {
    this.uint(block.length)
    const rice = encodeIntegers(block)
    const nonZero = isClustered && rice.length >= MIN_CLUSTERED ? countNonZero(block) : 0
    const bytes = nonZero > 0 && nonZero <= block.length / CLUSTERED_SHARE ? encodeClustered(block) : rice
    if (bytes.length + CLUSTERED_HEAD < rice.length) {
      this.byte(CLUSTERED)
      this.uint(nonZero)
      this.uint(bytes.length)
      this.raw(bytes)
    } else {
      this.byte(INTEGERS)
      this.raw(rice)
    }
    return this.#kept()
  }

  /** A block of `length` elements, as `blocks` writes it. */
  compactBlock(block: CompactBlock, length: number): void {
    if (block instanceof Float32Array) {
      this.blocks([block])
      return
    }
    this.uint(length)
    this.byte(SPARSE)
    this.uint(block.values.reduce((count, value) => count + Number(isNonZero(value)), 0))
    let next = 0
    forEachElement(block, (i, value) => {
      if (!isNonZero(value)) return
      this.uint(i - next)
      this.#float(value)
      next = i + 1
    })
  }

  /** The bytes written, which may be kept for long. */
  #kept(): Uint8Array {
    return this.release(this.bytes.slice(0, this.size))
  }

  #sparse({ indices, values }: SumBlock, nonZero: number): void {
    this.byte(SPARSE)
    this.uint(nonZero)
    const length = indices?.length ?? values.length
    let next = 0
    for (let n = 0; n < length; n++) {
      const i = indices === undefined ? n : indices[n]
      if (!isNonZero(values[i])) continue
      this.uint(i - next)
      this.#float(values[i])
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
    this.#uint32(floatBits[0])
  }

  /** 32 bits, little-endian. */
  #uint32(bits: number): void {
    const at = this.reserve(4)
    this.bytes[at] = bits
    this.bytes[at + 1] = bits >>> 8
    this.bytes[at + 2] = bits >>> 16
    this.bytes[at + 3] = bits >>> 24
  }

  /** The bytes written, without a checksum, in a buffer of their own. */
  unchecked(): Uint8Array {
    return this.copy()
  }

  /** Appends the checksum and returns the frame, in a new buffer unless `allocate` provides one. */
  finish(allocate?: Allocate): Uint8Array {
    const { size } = this
    this.#uint32(checksum(this.bytes, size))
    if (allocate === undefined) return this.result()
    const copy = allocate(this.size)
    if (this.size > SHORT_FRAME) copy.set(this.bytes.subarray(0, this.size))
    else for (let i = 0; i < this.size; i++) copy[i] = this.bytes[i]
    return this.release(copy)
  }
}

export class Reader extends ByteReader {
  /**
   * @param end offset after the last byte to read, if no checksum follows it
   * @throws FrameError if the checksum does not match
   */
  constructor(bytes: Uint8Array, end?: number) {
    if (end === undefined && bytes.length < 4) throw new FrameError('frame is shorter than its checksum')
    super(bytes, end ?? bytes.length - 4, FrameError)
    if (end === undefined && checksum(bytes, this.end) !== this.#uint32(this.end))
      throw new FrameError('checksum does not match')
  }

  /** 32 bits, little-endian. */
  #uint32(at: number): number {
    const { bytes } = this
    return bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24)
  }

  #float(at: number): number {
    floatBits[0] = this.#uint32(at)
    return float[0]
  }

  /** Reads what `Writer.signed` wrote. */
  signed(): number {
    const value = this.uint()
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2
  }

  /** @param maxBytes maximum length of the encoded string */
  string(maxBytes: number): string {
    const length = this.uint(maxBytes)
    const at = this.take(length)
    const short = length <= SHORT_STRING ? this.#ascii(at, length) : undefined
    if (short !== undefined) return short
    try {
      return decoder.decode(this.bytes.subarray(at, at + length))
    } catch {
      throw new FrameError('string is not valid UTF-8')
    }
  }

  /** A short string if it consists of ASCII characters. A call of the decoder takes longer. */
  #ascii(at: number, length: number): string | undefined {
    let value = ''
    for (let i = at; i < at + length; i++) {
      if (this.bytes[i] > 0x7f) return undefined
      value += String.fromCharCode(this.bytes[i])
    }
    return value
  }

  /**
   * Reads a string if it is this one. Otherwise nothing is read.
   * @param value of ASCII characters; others are never found
   */
  repeats(value: string): boolean {
    const before = this.at
    const length = this.uint()
    let isSame = length === value.length && length <= this.left
    for (let i = 0; isSame && i < length; i++) isSame = this.bytes[this.at + i] === value.charCodeAt(i)
    this.at = isSame ? this.at + length : before
    return isSame
  }

  hex(bytes: number): string {
    const at = this.take(bytes)
    return hexOf(this.bytes.subarray(at, at + bytes))
  }

  /** Bytes in a buffer of their own. */
  raw(bytes: number): Uint8Array {
    const at = this.take(bytes)
    return this.bytes.slice(at, at + bytes)
  }

  /** Reads `last.length` bytes into `last`. @returns whether they equal its previous content */
  updateInPlace(last: Uint8Array): boolean {
    const at = this.take(last.length)
    let isSame = true
    for (let i = 0; i < last.length; i++) {
      const byte = this.bytes[at + i]
      if (last[i] === byte) continue
      isSame = false
      last[i] = byte
    }
    return isSame
  }

  /** Reads blocks of exactly this layout, with finite elements only. */
  blocks(layout: Layout): Blocks {
    return blocksOf(this.sum(layout))
  }

  /**
   * Reads blocks of exactly this layout, with finite elements only.
   * @param into destination; new blocks if omitted
   */
  sum(layout: Layout, into: Sum = layout.blocks.map(({ length }) => SumBlock.zeros(length))): Sum {
    for (let b = 0; b < into.length; b++) this.#block(into[b], layout.blocks[b].name)
    return into
  }

  #block(sum: SumBlock, name: string): void {
    const { length } = sum
    const received = this.uint()
    if (received !== length) throw new FrameError(`block ${name} has ${received} elements; expected ${length}`)
    const kind = this.byte()
    if (kind === DENSE) {
      const at = this.take(length * 4)
      const block = sum.write()
      if (length > SHORT_BLOCK) {
        new Uint8Array(block.buffer, block.byteOffset, block.byteLength).set(this.bytes.subarray(at, at + length * 4))
      } else for (let i = 0; i < length; i++) block[i] = this.#float(at + 4 * i)
    } else if (kind === SPARSE) {
      this.#sparse(sum, name)
      return
    } else if (kind === INTEGERS) {
      this.#coded(sum, name, decodeIntegers)
      return
    } else if (kind === CLUSTERED) {
      const nonZero = this.uint(length)
      const size = this.uint(this.left)
      const at = this.take(size)
      this.#coded(sum, name, bytes => {
        decodeClustered(bytes, at, at + size, nonZero, sum)
        return at + size
      })
      return
    } else if (kind === FLOATS) this.#coded(sum.write(), name, decodeFloats)
    else throw new FrameError(`block ${name} has unknown encoding ${kind}`)
    if (!isFiniteBlock(sum.read())) throw new FrameError(`block ${name} contains a non-finite number`)
  }

  #sparse(block: SumBlock, name: string): void {
    const { length } = block
    const nonZero = this.uint(length)
    block.clear()
    let next = 0
    let bad = 0
    for (let n = 0; n < nonZero; n++) {
      next += this.uint(length)
      if (next >= length) throw new FrameError(`block ${name} has an element beyond its end`)
      const value = this.#float(this.take(4))
      bad += value - value
      block.set(next++, value)
    }
    if (bad !== 0) throw new FrameError(`block ${name} contains a non-finite number`)
  }

  #coded<Block>(
    block: Block,
    name: string,
    decode: (bytes: Uint8Array, at: number, end: number, into: Block) => number
  ): void {
    try {
      this.at = decode(this.bytes, this.at, this.end, block)
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      throw new FrameError(`block ${name}: ${error.message}`)
    }
  }
}

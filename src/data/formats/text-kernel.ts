/**
 * What the kernels of text formats share: a memory that begins with integers, powers of ten and text, and code that reads bytes of the
 * text.
 */
import { bytes, type Code, get, i32, type Local, type WasmFunction } from '../../numeric/assembler.js'
import { withMemory } from '../../numeric/wasm-memory.js'
import { POWERS_OF_TEN } from './decimals.js'

/** Bytes of text that are parsed at once, so few that they and what is found in them stay in the processor's cache. */
export const TEXT_BYTES = 1 << 16
/** Readable bytes after the text. */
const PADDING = 128
/** Rows that a kernel may leave before it is given up, if they are the majority. */
export const SPARED = 64

/** Byte offsets of integers that are parameters and results. */
export const AT = {
  position: 0,
  end: 4,
  rows: 8,
  entries: 12,
  most: 16,
  isLabelled: 20,
  mask: 24,
  constant: 28,
  limit: 32
} as const
/** Powers of ten, in float64. */
export const POWERS = 64
const TEXT = POWERS + 8 * POWERS_OF_TEN.length
/** The memory from here on belongs to the format. */
export const AFTER_TEXT = Math.ceil((TEXT + TEXT_BYTES + PADDING) / 64) * 64

const { constant } = i32
export const charCodes = (chars: string): number[] => [...chars].map(char => char.charCodeAt(0))
const [SPACE, NEWLINE, ZERO] = charCodes(' \n0')

export const is = (value: Code, char: number): Code => i32.equal(value, constant(char))
/** Whether a byte is white space. */
export const isSpace = (value: Code): Code => i32.not(i32.more(value, constant(SPACE)))
export const byteAt = (position: Local, offset = 0): Code =>
  offset < 0 ? i32.loadByte(i32.add(get(position), constant(offset))) : i32.loadByte(get(position), offset)
export const digitOf = (value: Code): Code => i32.sub(value, constant(ZERO))
export const integerOf = (offset: number): Code => i32.load(constant(0), offset)
/** Address of an element of 2^`shift` bytes. */
export const element = (base: number, index: Local, shift: number): Code =>
  i32.add(i32.shiftLeft(get(index), constant(shift)), constant(base))
/** Position of the first byte that the mask contains, 16 if there is none. */
export const firstOf = (mask: Code): Code => i32.trailingZeros(i32.or(bytes.bits(mask), constant(1 << 16)))

/** A kernel and its memory. Positions are those in the text that it has taken. */
export class TextKernel {
  protected readonly buffer: ArrayBuffer
  protected readonly integers: Int32Array
  readonly #parse: () => void
  readonly #text: Uint8Array

  /** @param functions one that is called `parse` */
  constructor(functions: readonly WasmFunction[], memoryBytes: number) {
    const { kernels, buffer } = withMemory(functions, memoryBytes)
    this.#parse = kernels.parse
    this.buffer = buffer
    this.integers = new Int32Array(buffer, 0, POWERS / 4)
    this.#text = new Uint8Array(buffer, TEXT, TEXT_BYTES)
    new Float64Array(buffer, POWERS).set(POWERS_OF_TEN)
  }

  /** Takes whole rows of the text. @returns the end of what it takes, `from` if the first row is too long */
  take(text: Uint8Array, from: number, to: number): number {
    const end = to - from <= TEXT_BYTES ? to : text.lastIndexOf(NEWLINE, from + TEXT_BYTES - 1) + 1
    if (end <= from) return from
    this.#text.set(text.subarray(from, end))
    this.integers[AT.end / 4] = TEXT + end - from
    return end
  }

  /** Runs the kernel from `start` on. @returns the position that it leaves */
  protected run(start: number): number {
    this.integers[AT.position / 4] = TEXT + start
    this.#parse()
    return this.positionOf(this.integers[AT.position / 4])
  }

  /** The position in the text of an address. */
  protected positionOf(address: number): number {
    return address - TEXT
  }
}

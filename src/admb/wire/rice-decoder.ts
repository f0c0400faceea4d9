/**
 * Decodes chunks of integers in Rice codes. WebAssembly kernels work on a memory that has a part of
 * the bytes.
 */
import { withMemory } from '../../numeric/wasm-memory.js'
import {
  MAX_TABLE_K,
  MAX_TABLE_MAGNITUDE_K,
  tabulateDense,
  tabulateSparse,
  WINDOW,
  WINDOW_CODES,
  type Windows
} from './rice.js'
import { BYTES, DECODED, LEFT, POSITION, riceDecoderKernels } from './rice-decoder-kernels.js'

/** Bytes of the source in the memory, and the minimum left when others replace them. */
const HELD_BYTES = 1 << 16
const MIN_BYTES = 1 << 12
const WORD_BYTES = 8
/** Zeros after the end of the source: a word can begin at its end. */
const PADDING_BYTES = 2 * WORD_BYTES
/** Maximum number of elements of a call. */
const MAX_ELEMENTS = 1 << 12

const CODES = BYTES + HELD_BYTES + PADDING_BYTES
const TABLES = CODES + 4 * MAX_ELEMENTS
const COUNTS_BYTES = 2 << WINDOW
const TABLE_BYTES = COUNTS_BYTES + (WINDOW_CODES << WINDOW)
const SPARSE_TABLES = MAX_TABLE_K + 1
const TABLE_COUNT = SPARSE_TABLES + MAX_TABLE_MAGNITUDE_K + 1

/**
 * Bits that are read one after the other. The next one is bit `offset` of the byte `at`, where bit
 * 0 is the most significant one.
 */
export interface BitSource {
  /** Stands for the source, so that the decoder does not keep its bytes. */
  readonly key: object
  readonly bytes: Uint8Array
  readonly end: number
  readonly at: number
  readonly offset: number
}

export class RiceDecoder {
  /** The elements that were decoded last. */
  readonly elements: Float32Array
  readonly #kernels: ReturnType<typeof withMemory>['kernels']
  readonly #bytes: Uint8Array
  readonly #position: Int32Array
  readonly #decoded: Int32Array
  readonly #left: Int32Array
  readonly #buffer: ArrayBuffer
  readonly #tables = new Set<number>()
  #source: object | undefined
  /** Range of the source in the memory, and the number of bytes that can begin a word. */
  #from = 0
  #to = 0
  #limit = 0
  #start = 0

  constructor() {
    const { kernels, buffer } = withMemory(riceDecoderKernels, TABLES + TABLE_COUNT * TABLE_BYTES)
    this.#kernels = kernels
    this.#buffer = buffer
    this.#bytes = new Uint8Array(buffer, BYTES, HELD_BYTES + PADDING_BYTES)
    this.#position = new Int32Array(buffer, POSITION, 1)
    this.#decoded = new Int32Array(buffer, DECODED, 1)
    this.#left = new Int32Array(buffer, LEFT, 1)
    this.elements = new Float32Array(buffer, CODES, MAX_ELEMENTS)
  }

  /** Number of elements other than 0 that the last call of `sparse` did not decode. */
  get left(): number {
    return this.#left[0]
  }

  /** Number of bits that the last call read. */
  get bits(): number {
    return this.#position[0] - this.#start
  }

  /**
   * Decodes elements from their zigzag codes, into `elements`: not beyond an escape, and not all of
   * many.
   * @param source `at` is `end` at most
   * @param count maximum number of elements
   * @param k parameter of the code, 24 at most
   * @returns how many there are
   */
  dense(source: BitSource, count: number, k: number): number {
    this.#hold(source)
    const table = k <= MAX_TABLE_K ? this.#table(k, windows => tabulateDense(k, windows)) : 0
    this.#kernels.dense(CODES, CODES + 4 * Math.min(count, MAX_ELEMENTS), this.#limit, k, table)
    return this.#finish()
  }

  /**
   * Decodes elements other than 0, whose gaps have the parameter 0, and the zeros before them, into
   * `elements`: not beyond an escape, and not if they exceed the chunk. Afterwards `left` is the
   * number of those that are left.
   * @param source `at` is `end` at most
   * @param count number of elements, with zeros, that are left in the chunk, 4096 at most
   * @param nonZero number of those other than 0
   * @param magnitude parameter of the magnitudes − 1, `MAX_TABLE_MAGNITUDE_K` at most
   * @returns how many elements are decoded, with zeros
   */
  sparse(source: BitSource, count: number, nonZero: number, magnitude: number): number {
    this.#hold(source)
    const table = this.#table(SPARSE_TABLES + magnitude, windows => tabulateSparse(magnitude, windows))
    this.#kernels.sparse(CODES, CODES + 4 * count, this.#limit, magnitude, table, nonZero)
    return this.#finish()
  }

  #finish(): number {
    const decoded = (this.#decoded[0] - CODES) / 4
    this.#kernels.numbers(CODES, (decoded + 3) >> 2)
    return decoded
  }

  /** Makes sure that the memory has the next bytes. */
  #hold({ key, bytes, at, offset, end }: BitSource): void {
    if (this.#source !== key || (this.#to - at < MIN_BYTES && this.#to < end)) {
      this.#source = key
      this.#from = at
      this.#to = Math.min(end, at + HELD_BYTES)
      const length = this.#to - at
      this.#bytes.set(bytes.subarray(at, this.#to))
      this.#bytes.fill(0, length, length + PADDING_BYTES)
      this.#limit = this.#to < end ? length - WORD_BYTES : length + WORD_BYTES
    }
    this.#start = 8 * (at - this.#from) + offset
    this.#position[0] = this.#start
  }

  /** Address of a table. */
  #table(number: number, tabulate: (windows: Windows) => void): number {
    const at = TABLES + number * TABLE_BYTES
    if (!this.#tables.has(number)) {
      const counts = new Uint16Array(this.#buffer, at, 1 << WINDOW)
      tabulate({ counts, codes: new Uint8Array(this.#buffer, at + COUNTS_BYTES, WINDOW_CODES << WINDOW) })
      this.#tables.add(number)
    }
    return at
  }
}

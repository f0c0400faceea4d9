/** Writes chunks of integers in Rice codes. WebAssembly kernels work on a memory that has room for the largest chunk. */
import { withMemory } from '../../base/assembler.js'
import { BYTES, NON_ZERO, POSITION, riceKernels, SUM } from './rice-kernels.js'

/** Elements that a writer holds at most. */
const MOST = 1 << 16
/** Bytes that an element takes at most: a gap and a magnitude with escapes, and a sign. */
const MAX_BYTES = 13
/** Heads of chunks, and the last word. */
const HEAD_BYTES = 1 << 12
const CODES = BYTES + MAX_BYTES * MOST + HEAD_BYTES
const POSITIONS = CODES + 4 * MOST

export class RiceWriter {
  /** Zigzag codes of elements other than 0, and their positions in the chunk, for `sparse`. */
  readonly codes: Int32Array
  readonly positions: Int32Array
  readonly #values: Float32Array
  readonly #bytes: Uint8Array
  readonly #position: Int32Array
  readonly #nonZero: Int32Array
  readonly #sum: Float64Array
  readonly #kernels: ReturnType<typeof withMemory>['kernels']
  /** The bytes before those in the memory. Reused, because allocating memory takes longer than the code. */
  #written = new Uint8Array(1 << 12)
  #length = 0

  constructor() {
    const { kernels, buffer } = withMemory(riceKernels, POSITIONS + 4 * MOST)
    this.#kernels = kernels
    this.#position = new Int32Array(buffer, POSITION, 1)
    this.#nonZero = new Int32Array(buffer, NON_ZERO, 1)
    this.#sum = new Float64Array(buffer, SUM, 1)
    this.#bytes = new Uint8Array(buffer, BYTES, CODES - BYTES)
    this.#values = new Float32Array(buffer, CODES, MOST)
    this.codes = new Int32Array(buffer, CODES, MOST)
    this.positions = new Int32Array(buffer, POSITIONS, MOST)
  }

  /** Starts a block, whatever has been written before. */
  begin(): void {
    this.#length = 0
    this.#position[0] = 0
    this.#bytes[0] = 0
  }

  /** Reads elements of a block, 2^16 at most. */
  load(elements: Float32Array): void {
    this.#values.set(elements)
    this.#values.fill(0, elements.length, (elements.length + 3) & ~3)
  }

  /** Makes zigzag codes of loaded elements. @returns how many are not 0, and the sum of the codes */
  measure(from: number, count: number): { readonly nonZero: number; readonly sum: number } {
    this.#kernels.measure(CODES + 4 * from, (count + 3) >> 2)
    return { nonZero: this.#nonZero[0], sum: this.#sum[0] }
  }

  /** @param value has `count` bits, 32 at most */
  put(value: number, count: number): void {
    this.#kernels.put(value, count)
  }

  /** The codes of elements. */
  dense(from: number, count: number, k: number): void {
    this.#kernels.dense(CODES + 4 * from, count, k)
  }

  /** Moves codes of elements other than 0 to the place of the first one, with their positions. */
  gather(from: number, count: number): void {
    this.#kernels.gather(CODES + 4 * from, count, POSITIONS)
  }

  /**
   * For each code the zeros before it, its sign, and its magnitude − 1.
   * @param from place of the first code
   * @param gap k of the numbers of zeros
   * @param magnitude k of the magnitudes
   */
  sparse(from: number, count: number, gap: number, magnitude: number): void {
    this.#kernels.sparse(CODES + 4 * from, POSITIONS, count, gap, magnitude)
  }

  /** Makes room for the codes of as many elements as a writer holds. */
  flush(): void {
    const complete = this.#position[0] >>> 3
    const end = this.#length + complete
    if (end > this.#written.length) {
      const larger = new Uint8Array(Math.max(2 * this.#written.length, end))
      larger.set(this.#written.subarray(0, this.#length))
      this.#written = larger
    }
    this.#written.set(this.#bytes.subarray(0, complete), this.#length)
    this.#length = end
    this.#bytes[0] = this.#bytes[complete]
    this.#position[0] &= 7
  }

  /** @returns a copy of all bytes, the last one padded with zeros */
  finish(): Uint8Array<ArrayBuffer> {
    this.put(0, -this.#position[0] & 7)
    this.flush()
    return this.#written.slice(0, this.#length)
  }
}

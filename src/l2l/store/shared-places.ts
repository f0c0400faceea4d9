/** Where each array is in the arena, in memory that threads share, so that other threads update blocks in place. */
import type { BlockMemory } from '../training/block-memory.js'
import type { Range } from './arena.js'
import { type ArrayLengths, FileLayout } from './layer-file.js'

export interface PlacesData {
  readonly lengths: ArrayLengths
  /** Whether the second array of a block is its average. */
  readonly hasAverage: boolean
  readonly memories: readonly SharedArrayBuffer[]
  /** Memory and offset of each array. */
  readonly table: SharedArrayBuffer
}

export class SharedPlaces {
  readonly #table: Float64Array
  readonly #first: readonly number[]

  /** @param data the `data` property of another thread's instance */
  constructor(readonly data: PlacesData) {
    this.#table = new Float64Array(data.table)
    this.#first = new FileLayout(data.lengths).first
  }

  static create(lengths: ArrayLengths, hasAverage: boolean, memories: readonly SharedArrayBuffer[]): SharedPlaces {
    const { arrays } = new FileLayout(lengths)
    return new SharedPlaces({ lengths, hasAverage, memories, table: new SharedArrayBuffer(16 * arrays) })
  }

  set(block: number, array: number, { memory, offset }: Range): void {
    this.#table.set([memory, offset], 2 * (this.#first[block] + array))
  }

  /** An array that is in the arena. */
  array(block: number, array: number): Float32Array {
    const at = 2 * (this.#first[block] + array)
    const { memories, lengths } = this.data
    return new Float32Array(memories[this.#table[at]], this.#table[at + 1], lengths[block][array])
  }

  /** A block of which all arrays are in the arena. */
  block(block: number): BlockMemory {
    const [parameters, ...rest] = this.data.lengths[block].map((_, array) => this.array(block, array))
    if (!this.data.hasAverage) return { parameters, average: parameters, state: rest }
    const [average, ...state] = rest
    return { parameters, average, state }
  }
}

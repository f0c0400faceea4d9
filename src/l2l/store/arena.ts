/** Shared memory of a fixed size, from which page-aligned ranges are allocated. */

import type { BlockMemory } from '../training/block-memory.js'
import { type ArrayLengths, aligned, FileLayout, PAGE_BYTES } from './layer-file.js'

/** Bytes of a page of WebAssembly's memory, which is aligned as direct I/O requires. */
const WASM_PAGE = 2 ** 16
/** Largest number of pages of one memory. */
const MAX_PAGES = 2 ** 15

/** The part of WebAssembly's interface that is used. */
interface Runtime {
  readonly Memory: new (limits: {
    readonly initial: number
    readonly maximum: number
    readonly shared: true
  }) => { readonly buffer: SharedArrayBuffer }
}

/** A range of bytes in one of the memories. */
export interface Range {
  readonly memory: number
  readonly offset: number
  readonly bytes: number
}

export class Arena {
  readonly memories: readonly SharedArrayBuffer[]
  /** Bytes that can be allocated. */
  readonly bytes: number
  /** Free ranges of each memory, in the order of their offsets. */
  readonly #free: { offset: number; bytes: number }[][]

  /** @param bytes rounded up to whole pages; no range is larger than 2 GiB */
  constructor(bytes: number) {
    const { WebAssembly } = globalThis as unknown as { readonly WebAssembly: Runtime }
    const memories: SharedArrayBuffer[] = []
    this.bytes = aligned(bytes)
    this.#free = []
    for (let left = this.bytes; left > 0; ) {
      const pages = Math.min(MAX_PAGES, Math.ceil(left / WASM_PAGE))
      const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true })
      memories.push(memory.buffer)
      this.#free.push([{ offset: 0, bytes: Math.min(left, pages * WASM_PAGE) }])
      left -= pages * WASM_PAGE
    }
    this.memories = memories
  }

  /** The first range that is free; undefined if there is none. */
  allocate(length: number): Range | undefined {
    const bytes = Math.max(PAGE_BYTES, aligned(length))
    for (const [memory, ranges] of this.#free.entries()) {
      const index = ranges.findIndex(range => range.bytes >= bytes)
      if (index < 0) continue
      const range = ranges[index]
      const { offset } = range
      if (range.bytes === bytes) ranges.splice(index, 1)
      else {
        range.offset += bytes
        range.bytes -= bytes
      }
      return { memory, offset, bytes }
    }
    return undefined
  }

  release({ memory, offset, bytes }: Range): void {
    const ranges = this.#free[memory]
    let index = ranges.findIndex(range => range.offset > offset)
    if (index < 0) index = ranges.length
    ranges.splice(index, 0, { offset, bytes })
    for (const left of [index, index - 1]) {
      const [a, b] = [ranges[left], ranges[left + 1]]
      if (a === undefined || b === undefined || a.offset + a.bytes !== b.offset) continue
      a.bytes += b.bytes
      ranges.splice(left + 1, 1)
    }
  }
}

/** Where each array is in the arena, in memory that threads share, so that other threads update blocks in place. */
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

/** Shared memory of a fixed size, from which page-aligned ranges are allocated. */
import { aligned, PAGE_BYTES } from './layer-file.js'

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

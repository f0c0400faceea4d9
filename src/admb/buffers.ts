/**
 * Vectors that come and go with every message: handed out again instead of made anew, where they are small enough for the
 * making to cost more than the keeping.
 */
import type { Blocks, Layout } from '../learner/types.js'
import { byteLength, clear, zeros } from './vectors.js'

/** Larger ones are left to the garbage collector, so that no memory is held back for them. */
const MAX_POOLED_BYTES = 1 << 16
const MAX_POOLED = 64

export class BufferPool {
  readonly #layout: Layout
  readonly #isPooled: boolean
  readonly #free: Float32Array[][] = []

  constructor(layout: Layout) {
    this.#layout = layout
    this.#isPooled = byteLength(layout) <= MAX_POOLED_BYTES
  }

  /** Blocks of the layout with any content. */
  take(): Float32Array[] {
    return this.#free.pop() ?? zeros(this.#layout)
  }

  /** Blocks of zeros. */
  zeros(): Float32Array[] {
    const blocks = this.#free.pop()
    if (blocks === undefined) return zeros(this.#layout)
    clear(blocks)
    return blocks
  }

  /** Gives blocks back that nobody reads any more. */
  give(blocks: Blocks): void {
    if (this.#isPooled && this.#free.length < MAX_POOLED) this.#free.push(blocks as Float32Array[])
  }
}

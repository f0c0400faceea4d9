/** Float32 arithmetic on parameter blocks, and a pool of blocks. */
import { isFiniteBlock } from '../base/floats.js'
import type { Blocks, Layout } from '../learner/types.js'

/** Layouts of the vectors of a predictor. */
export interface Shapes {
  readonly parameters: Layout
  readonly state: Layout
  /** Whether gradient sums are integers. @default false */
  readonly isLattice?: boolean
}

/** Zero blocks of a layout. */
export function zeros(layout: Layout): Float32Array[] {
  return layout.blocks.map(block => new Float32Array(block.length))
}

/** sum += addend, element by element, rounded to float32. */
export function addInto(sum: Blocks, addend: Blocks): void {
  for (let b = 0; b < sum.length; b++) {
    const s = sum[b]
    const a = addend[b]
    for (let i = 0; i < s.length; i++) s[i] += a[i]
  }
}

export function copyOf(blocks: Blocks): Float32Array[] {
  return blocks.map(block => block.slice())
}

export function clear(blocks: Blocks): void {
  for (const block of blocks) block.fill(0)
}

export function isFinite32(blocks: Blocks): boolean {
  return blocks.every(isFiniteBlock)
}

/** Total bytes of a layout's blocks. */
export function byteLength(layout: Layout): number {
  let length = 0
  for (const block of layout.blocks) length += block.length
  return length * 4
}

/** Larger sets of blocks are left to the garbage collector, so that the pool does not hold much memory. */
const MAX_POOLED_BYTES = 1 << 16
const MAX_POOLED = 64

/** Reuses the blocks of sums, which every message would otherwise allocate, if they are small. */
export class BufferPool {
  readonly layout: Layout
  readonly #isPooled: boolean
  readonly #free: Float32Array[][] = []

  constructor(layout: Layout) {
    this.layout = layout
    this.#isPooled = byteLength(layout) <= MAX_POOLED_BYTES
  }

  /** Blocks with arbitrary content. */
  take(): Float32Array[] {
    return this.#free.pop() ?? zeros(this.layout)
  }

  /** Blocks of zeros. */
  zeros(): Float32Array[] {
    const blocks = this.#free.pop()
    if (blocks === undefined) return zeros(this.layout)
    clear(blocks)
    return blocks
  }

  /** Returns blocks to the pool. The caller must not use them any more. */
  give(blocks: Blocks): void {
    if (this.#isPooled && this.#free.length < MAX_POOLED) this.#free.push(blocks as Float32Array[])
  }
}

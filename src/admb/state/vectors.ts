/** Float32 arithmetic on parameter blocks, and a pool of blocks. */

import { copyBlock } from '../../base/memory.js'
import { isFiniteBlock } from '../../base/numbers.js'
import { addBlock, clearBlock, recycleBlock, type SparseBlock, supportOf, zeroBlock } from '../../base/support.js'
import type { Averaging, Blocks, Layout, UpdateRule } from '../../learner/types.js'

/** Layouts of the vectors of a predictor. */
export interface Shapes {
  readonly parameters: Layout
  /** What a predictor contains of its average. */
  readonly average: Layout
  readonly state: Layout
  /** Whether gradient sums are integers. @default false */
  readonly isLattice?: boolean
}

/** The layouts of predictors with these parameters. */
export function shapesOf(
  parameters: Layout,
  { rule, averaging }: { readonly rule: UpdateRule; readonly averaging: Averaging }
): Shapes {
  return { parameters, average: averaging.layout?.(parameters) ?? parameters, state: rule.stateLayout(parameters) }
}

/** Zero blocks of a layout. Those that are long have a support. */
export function zeros(layout: Layout): Float32Array[] {
  return layout.blocks.map(({ length }) => zeroBlock(length))
}

/** sum += addend, element by element, rounded to float32. */
export function addInto(sum: Blocks, addend: readonly (Float32Array | SparseBlock)[]): void {
  for (let b = 0; b < sum.length; b++) addBlock(sum[b], addend[b])
}

export function copyOf(blocks: Blocks): Float32Array[] {
  return blocks.map(copyBlock)
}

export function clear(blocks: Blocks): void {
  for (const block of blocks) clearBlock(block)
}

export function isFinite32(blocks: Blocks): boolean {
  return blocks.every(block => {
    const indices = supportOf(block)?.indices
    return indices === undefined ? isFiniteBlock(block) : indices.every(i => Number.isFinite(block[i]))
  })
}

/** Total bytes of a layout's blocks. */
export function byteLength(layout: Layout): number {
  let length = 0
  for (const block of layout.blocks) length += block.length
  return length * 4
}

/** Larger sets of blocks are not kept, so that the pool does not hold much memory. */
const MAX_POOLED_BYTES = 1 << 16
const MAX_POOLED = 64

/** Makes long sparse blocks available to `zeros`. The caller must not use them any more. */
export function recycle(blocks: Blocks): void {
  for (const block of blocks) recycleBlock(block)
}

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
    if (!this.#isPooled) recycle(blocks)
    else if (this.#free.length < MAX_POOLED) this.#free.push(blocks as Float32Array[])
  }
}

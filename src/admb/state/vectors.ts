/** Float32 arithmetic on parameter blocks, and a pool of blocks. */

import type { Averaging, Blocks, Layout, UpdateRule } from '../../learning/types.js'
import { copyBlock } from '../../numeric/memory.js'
import { isFiniteBlock } from '../../numeric/numbers.js'
import { addBlock, clearBlock, recycleBlock, type SparseBlock, supportOf, zeroBlock } from '../../numeric/support.js'
import {
  type BlockSource,
  blockSize,
  compactBlocks,
  FrameError,
  float32Bytes,
  readCompactBlocks
} from '../wire/bytes.js'

/** Layouts of the vectors of a predictor. */
export interface Shapes {
  readonly parameters: Layout
  /** Layout of the average, as far as a predictor contains it. */
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

/** Maximum size of a set of blocks that is kept, so that the pool does not hold much memory. */
const MAX_POOLED_BYTES = 1 << 16
/** Maximum number of sets that are kept. */
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

/** Maximum number of steps of a chain. */
export const MAX_STEPS = 64

/**
 * The gradient sum of a batch, from which a node that holds the parent computes the predictor. It
 * is stored in the encoding in which it is sent. A chain of steps takes at most as many bytes as a
 * whole predictor, so sending it is never more expensive. Immutable.
 */
export interface Step {
  readonly blocks: readonly BlockSource[]
  /** Encoded size. */
  readonly bytes: number
  /** Approximate size of an integer sum as float32 numbers, in bytes; 0 if it consists of them. */
  readonly float32: number
}

/** The step of a sum. Dense blocks of float32 numbers are kept by reference. */
export function createStep(sum: Blocks, { isLattice = false }: Pick<Shapes, 'isLattice'>): Step {
  let float32 = 0
  if (isLattice) for (const block of sum) float32 += float32Bytes(block)
  return stepOf(compactBlocks(sum, isLattice), float32)
}

/** A step of these compact blocks. */
export function stepOf(blocks: readonly BlockSource[], float32: number): Step {
  let bytes = 0
  for (const block of blocks) bytes += blockSize(block)
  return { blocks, bytes, float32 }
}

/** The gradient sum as dense blocks. */
export function expand(step: Step, layout: Layout): Blocks {
  return readCompactBlocks(step.blocks, layout)
}

/** Maximum number of bytes of a chain of steps: those of a whole predictor. */
export function maximumChainBytes({ parameters, average, state }: Shapes): number {
  return byteLength(parameters) + byteLength(average) + byteLength(state)
}

/**
 * Joins the blocks of a chain into its steps.
 * @param parts a block each, of all steps, one step after the other
 * @throws FrameError if the chain is larger than a whole predictor
 */
export function chainOf(parts: readonly Step[], shapes: Shapes): Step[] {
  const { length } = shapes.parameters.blocks
  const steps: Step[] = []
  for (let first = 0; first < parts.length; first += length) {
    const ofStep = parts.slice(first, first + length)
    const float32 = ofStep.reduce((sum, part) => sum + part.float32, 0)
    steps.push(
      stepOf(
        ofStep.flatMap(({ blocks }) => blocks),
        float32
      )
    )
  }
  checkChain(steps, shapes)
  return steps
}

/** @throws FrameError if the chain is larger than a whole predictor; a single step never is */
export function checkChain(steps: readonly Step[], shapes: Shapes): void {
  if (steps.length > 1 && keepChain(steps, maximumChainBytes(shapes)).length < steps.length)
    throw new FrameError(`chain of ${steps.length} steps is larger than the predictor`)
}

/** The newest steps that fit in `bytes`, at least one. @param steps newest first */
export function keepChain(steps: readonly Step[], bytes: number): readonly Step[] {
  let kept = 0
  for (let total = 0; kept < steps.length && kept < MAX_STEPS; kept++) {
    total += steps[kept].bytes
    if (kept > 0 && total > bytes) break
  }
  return kept === steps.length ? steps : steps.slice(0, kept)
}

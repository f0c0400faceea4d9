/** Float32 arithmetic on parameter blocks, and a pool of blocks. */

import type { Averaging, Layout, UpdateRule } from '../../learning/types.js'
import { type CompactBlock, type Sum, SumBlock } from '../../numeric/sums.js'
import { blockSize, compactBlocks, FrameError, float32Bytes, readCompactBlocks, type SumSource } from '../wire/bytes.js'

/** Layouts of the vectors of a predictor. */
export interface Shapes {
  readonly parameters: Layout
  /** Layout of the average, as far as a predictor contains it. */
  readonly average: Layout
  readonly state: Layout
  /** Whether gradient sums are integers. @default false */
  readonly isLattice?: boolean
  /** Whether integer sums have a range code where it takes fewer bytes. @default false */
  readonly isClustered?: boolean
}

/** The layouts of predictors with these parameters. */
export function shapesOf(
  parameters: Layout,
  { rule, averaging }: { readonly rule: UpdateRule; readonly averaging: Averaging }
): Shapes {
  return { parameters, average: averaging.layout?.(parameters) ?? parameters, state: rule.stateLayout(parameters) }
}

/** A sum of zeros. */
export function zeros(layout: Layout): Sum {
  return layout.blocks.map(({ length }) => SumBlock.zeros(length))
}

/** sum += addend, element by element, rounded to float32. */
export function addInto(sum: Sum, addend: readonly (SumBlock | CompactBlock)[]): void {
  for (let b = 0; b < sum.length; b++) sum[b].addBlock(addend[b])
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
export function recycle(sum: Sum): void {
  for (const block of sum) block.recycle()
}

/** Reuses sums, which every message would otherwise allocate, if they are small. */
export class BufferPool {
  readonly layout: Layout
  readonly #isPooled: boolean
  readonly #free: Sum[] = []

  constructor(layout: Layout) {
    this.layout = layout
    this.#isPooled = byteLength(layout) <= MAX_POOLED_BYTES
  }

  /** A sum with arbitrary content. */
  take(): Sum {
    return this.#free.pop() ?? zeros(this.layout)
  }

  /** Returns a sum to the pool. The caller must not use it any more. */
  give(sum: Sum): void {
    if (!this.#isPooled) recycle(sum)
    else if (this.#free.length < MAX_POOLED) this.#free.push(sum)
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
  readonly blocks: readonly SumSource[]
  /** Encoded size. */
  readonly bytes: number
  /** Approximate size of an integer sum as float32 numbers, in bytes; 0 if it consists of them. */
  readonly float32: number
}

/** The step of a sum. Dense blocks of float32 numbers are kept by reference. */
export function createStep(
  sum: Sum,
  { isLattice = false, isClustered }: Pick<Shapes, 'isLattice' | 'isClustered'>
): Step {
  let float32 = 0
  if (isLattice) for (const block of sum) float32 += float32Bytes(block)
  return stepOf(compactBlocks(sum, isLattice, isClustered), float32)
}

/** A step of these compact blocks. */
export function stepOf(blocks: readonly SumSource[], float32: number): Step {
  let bytes = 0
  for (const block of blocks) bytes += blockSize(block)
  return { blocks, bytes, float32 }
}

/** The gradient sum of a step, in blocks of its own unless it keeps dense ones. */
export function expand(step: Step, layout: Layout): Sum {
  return readCompactBlocks(step.blocks, layout)
}

/** Maximum number of bytes of a chain of steps: those of a whole predictor. */
export function maximumChainBytes({ parameters, average, state }: Shapes): number {
  return byteLength(parameters) + byteLength(average) + byteLength(state)
}

/** Bytes of a chain that is kept in any case, if the predictor has as many. */
const MIN_KEPT_BYTES = 2 ** 24

/**
 * Maximum number of bytes of the steps that a node keeps. Those of a long model take as much memory as its parameters or, while it serves
 * a predictor from which they lead on, as the whole of it.
 */
export function keptChainBytes(shapes: Shapes, isServing = false): number {
  return isServing
    ? maximumChainBytes(shapes)
    : Math.min(maximumChainBytes(shapes), Math.max(MIN_KEPT_BYTES, byteLength(shapes.parameters)))
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

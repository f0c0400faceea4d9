/**
 * Steps: the gradient sums of the last batches, from which a node that holds an ancestor of a predictor computes it. They are
 * stored in the encoding in which they are sent. A chain takes at most as many bytes as a whole predictor, so sending it is never
 * more expensive.
 */
import type { Blocks, Layout } from '../../learner/types.js'
import {
  type BlockSource,
  blockSize,
  compactBlocks,
  FrameError,
  float32Bytes,
  readCompactBlocks
} from '../wire/bytes.js'
import { byteLength, type Shapes } from './vectors.js'

/** Maximum number of steps of a chain. */
export const MAX_STEPS = 64

/** The gradient sum of a batch, each block compact. Immutable. */
export interface Step {
  readonly blocks: readonly BlockSource[]
  /** Encoded size. */
  readonly bytes: number
  /** About how many bytes an integer sum takes as float32 numbers; 0 if it consists of them. */
  readonly float32: number
}

/** Dense blocks of float32 numbers are kept by reference. */
export function createStep(sum: Blocks, { isLattice = false }: Pick<Shapes, 'isLattice'>): Step {
  let float32 = 0
  if (isLattice) for (const block of sum) float32 += float32Bytes(block)
  return stepOf(compactBlocks(sum, isLattice), float32)
}

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

/** As many of the newest steps as fit in `bytes`, at least one. @param steps newest first */
export function keepChain(steps: readonly Step[], bytes: number): readonly Step[] {
  let kept = 0
  for (let total = 0; kept < steps.length && kept < MAX_STEPS; kept++) {
    total += steps[kept].bytes
    if (kept > 0 && total > bytes) break
  }
  return kept === steps.length ? steps : steps.slice(0, kept)
}

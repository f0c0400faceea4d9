/**
 * The update of a predictor's content. If rule and average are local and a batch has few non-zero elements, only these are gathered, stepped
 * and scattered, by the same rule and average that step whole blocks. So both ways give the same bits.
 */
import { isFiniteBlock } from '../base/floats.js'
import { nonZeroIndices } from '../base/support.js'
import type { Averaging, Blocks, Content, Digest, UpdateRule } from '../learner/types.js'
import { SharedContent } from './shared-content.js'

/** Shorter blocks are stepped whole. */
const MIN_LENGTH = 2 ** 14
/**
 * Gathered blocks have at least this many elements more than there are indices. They are 1, with gradient 0: an update that changes
 * them changes every element. Their number keeps a gathered model from being taken for a small one.
 */
const UNTOUCHED = 1024

/** A gradient sum and the number of gradients in it. With a grid, the sum consists of integers. */
export interface Batch {
  readonly sum: Blocks
  readonly count: number
  /** Number of nodes whose gradients it contains; only rules with a grid need it. @default 1 */
  readonly contributorCount?: number
}

/** Computes the next predictor from a predictor and a batch; identical on every peer. */
export interface Recipe {
  readonly rule: UpdateRule
  readonly averaging: Averaging
  readonly digest: Digest
}

/** w ← rule(sum / count) and its average. @param updates number of updates before */
export function advance(before: Content, batch: Batch, updates: number, recipe: Recipe): Content {
  return advanceTouched(before, batch, updates, recipe) ?? step(before, batch, updates, recipe)
}

function step(before: Content, { sum, count, contributorCount }: Batch, updates: number, recipe: Recipe): Content {
  const { parameters, state } = recipe.rule.step(before, sum, count, updates, contributorCount)
  const average = recipe.averaging.average(before.average, parameters, updates, before.parameters)
  return { parameters, average, state }
}

/** @returns undefined if the whole blocks must be stepped */
function advanceTouched(before: Content, batch: Batch, updates: number, recipe: Recipe): Content | undefined {
  if (!(recipe.rule.isLocal && recipe.averaging.isLocal)) return undefined
  const { sum, count, contributorCount } = batch
  const long = sum.filter(({ length }) => length >= MIN_LENGTH)
  if (long.length !== 1) return undefined
  const [{ length }] = long
  const indices = nonZeroIndices(long[0])
  if (indices === undefined) return undefined
  const { parameters, average, state } = before
  const some = gathered(before, length, indices)
  const next = step(some, { sum: gatherEach(sum, length, indices, 0), count, contributorCount }, updates, recipe)
  const blocks = [...next.parameters, ...next.average, ...next.state]
  const isLong = [...parameters, ...average, ...state].map(block => block.length === length)
  const values = blocks.filter((_, b) => isLong[b])
  if (values.some(block => block[indices.length] !== 1)) return undefined
  // The whole step reports numbers that are not finite.
  if (!blocks.every(isFiniteBlock)) return undefined
  const shared = before instanceof SharedContent ? before : SharedContent.copyOf(before, length)
  return shared.with(
    { indices, values },
    blocks.filter((_, b) => !isLong[b])
  )
}

/** The elements of a content's blocks of this length at the indices, followed by ones. Shorter blocks are copied. */
export function gathered({ parameters, average, state }: Content, length: number, indices: Int32Array): Content {
  return {
    parameters: gatherEach(parameters, length, indices, 1),
    average: gatherEach(average, length, indices, 1),
    state: gatherEach(state, length, indices, 1)
  }
}

function gatherEach(blocks: Blocks, length: number, indices: Int32Array, fill: number): Float32Array[] {
  return blocks.map(block => (block.length === length ? gather(block, indices, fill) : block.slice()))
}

function gather(block: Float32Array, indices: Int32Array, fill: number): Float32Array {
  const gathered = new Float32Array(indices.length + UNTOUCHED)
  for (let n = 0; n < indices.length; n++) gathered[n] = block[indices[n]]
  if (fill !== 0) gathered.fill(fill, indices.length)
  return gathered
}

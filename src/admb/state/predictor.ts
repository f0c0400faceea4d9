/**
 * Predictors and their derivation. A predictor is an immutable value. Its header states its parent
 * and whose gradients the update used. The headers of the last updates, its lineage, let a node
 * determine which of its own gradients were used.
 *
 * If rule and average are local and a batch has few non-zero elements, an update steps only these
 * (`stepTouched`), by the same rule and average that step whole blocks. So both ways give the same
 * bits.
 */

import type { Averaging, BatchRule, Blocks, Content, Digest, RoundedBlocks, UpdateRule } from '../../learning/types.js'
import { roundChanged } from '../../numeric/block-kernels.js'
import { isFiniteBlock } from '../../numeric/numbers.js'
import { blocksOf, type Sum } from '../../numeric/sums.js'
import { gatherEach, stepTouched } from '../../numeric/touched.js'
import type { Contributor, Coverage } from './coverage.js'
import type { PredictorId } from './predictor-id.js'
import { SharedContent } from './shared-content.js'

/** A gradient sum and the number of gradients in it. With a grid, the sum consists of integers. */
export interface Batch {
  readonly sum: Sum
  readonly count: number
  /** Number of nodes whose gradients it contains; only rules with a grid need it. @default 1 */
  readonly contributorCount?: number
}

/** Computes the next predictor from a predictor and a batch; identical on every peer. */
export interface Recipe {
  readonly rule: UpdateRule
  readonly averaging: Averaging
  readonly digest: Digest
  /** @default none */
  readonly rounded?: RoundedBlocks
}

/**
 * A content with its id. Immutable: share it, never write to it. Predictors of large sparse models
 * share arrays: read blocks from a predictor when they are needed, and copy those that must outlive
 * the next event.
 */
export interface Predictor extends Content {
  readonly id: PredictorId
  /**
   * Content whose arrays are shared; undefined if none are.
   * @internal
   */
  readonly shared?: SharedContent
}

class SharedPredictor implements Predictor {
  constructor(
    readonly id: PredictorId,
    readonly shared: SharedContent
  ) {}

  get parameters(): Blocks {
    return this.shared.parameters
  }

  get average(): Blocks {
    return this.shared.average
  }

  get state(): Blocks {
    return this.shared.state
  }
}

/** Derivation of a predictor. The coverage refers to the table of the header's holder. */
export interface Header {
  readonly id: PredictorId
  readonly parent: PredictorId
  /** Number of gradients in the batch. */
  readonly count: number
  readonly coverage: Coverage
  /** Signature of the maker over all of the above; undefined without a key. */
  readonly signature?: Uint8Array
}

/** b of a predictor. */
export function batchOf(batch: number | BatchRule, { parameters }: Predictor): number {
  return typeof batch === 'number' ? batch : batch.of(parameters)
}

/** The common starting predictor: no updates, no origin. */
export function startingPredictor(initial: Blocks, recipe: Recipe): Predictor {
  const { rounded } = recipe
  const parameters = rounded ? initial.map((block, k) => (rounded.parameters[k] ? roundedCopy(block) : block)) : initial
  const layout = { blocks: parameters.map((block, i) => ({ name: String(i), length: block.length })) }
  const state = recipe.rule.stateLayout(layout).blocks.map(block => new Float32Array(block.length))
  const average = recipe.averaging.contain?.(parameters, parameters) ?? parameters
  const digest = recipe.digest([parameters, average, state])
  return { id: { updates: 0, origin: '', incarnation: 0, nonce: 0, digest }, parameters, average, state }
}

/** A copy that is rounded as if an update before the first one had made it of zeros. */
function roundedCopy(block: Float32Array): Float32Array {
  const copy = block.slice()
  roundChanged(copy, new Float32Array(copy.length), -1)
  return copy
}

/** w ← rule(sum / count) and its average. @param updates number of updates before */
export function advance(before: Content, batch: Batch, updates: number, recipe: Recipe): Content {
  return advanceTouched(before, batch, updates, recipe) ?? step(before, blocksOf(batch.sum), batch, updates, recipe)
}

function step(
  before: Content,
  sum: Blocks,
  { count, contributorCount }: Omit<Batch, 'sum'>,
  updates: number,
  recipe: Recipe
): Content {
  const { rule, averaging, rounded } = recipe
  const { parameters, state } = rule.step(before, sum, count, updates, contributorCount)
  if (rounded) roundEach(parameters, before.parameters, rounded.parameters, updates)
  const average = averaging.average(before.average, parameters, updates, before.parameters, rule.minWeight?.(state))
  if (rounded) {
    roundEach(average, before.average, rounded.average, updates)
    roundEach(state, before.state, rounded.state, updates)
  }
  return { parameters, average, state }
}

function roundEach(blocks: Blocks, before: Blocks, isRounded: readonly boolean[], updates: number): void {
  for (const [k, block] of blocks.entries()) if (isRounded[k]) roundChanged(block, before[k], updates)
}

type Groups = readonly [parameters: Blocks, average: Blocks, state: Blocks]

/** @returns undefined if the whole blocks must be stepped */
function advanceTouched(before: Content, batch: Batch, updates: number, recipe: Recipe): Content | undefined {
  if (!(recipe.rule.isLocal && recipe.averaging.isLocal)) return undefined
  const stepGroups = ([parameters, average, state]: Groups, sum: Blocks): Groups => {
    const next = step({ parameters, average, state }, sum, batch, updates, recipe)
    return [next.parameters, next.average, next.state]
  }
  const groups: Groups = [before.parameters, before.average, before.state]
  const touched = stepTouched(groups, batch.sum, stepGroups)
  if (touched === undefined) return undefined
  const shared = before instanceof SharedContent ? before : SharedContent.copyOf(before, touched.length)
  return shared.with(touched, touched.short)
}

/** The elements of blocks of this length at the indices, then ones. Shorter blocks are copied. */
export function gathered({ parameters, average, state }: Content, length: number, indices: Int32Array): Content {
  return {
    parameters: gatherEach(parameters, length, indices, 1),
    average: gatherEach(average, length, indices, 1),
    state: gatherEach(state, length, indices, 1)
  }
}

/**
 * Dekel et al., Algorithm 6: w ← rule(sum / count), w̄ ← average, v ← v + 1. Deterministic:
 * replaying the batch on the parent yields the same bits as at the origin.
 */
export function nextPredictor(
  parent: Predictor,
  batch: Batch,
  { origin, incarnation, nonce }: Contributor,
  recipe: Recipe
): Predictor {
  const { updates } = parent.id
  const content = advance(parent.shared ?? parent, batch, updates, recipe)
  const isShared = content instanceof SharedContent
  const digest = isShared
    ? content.digest(recipe.digest)
    : recipe.digest([content.parameters, content.average, content.state])
  const id = { updates: updates + 1, origin, incarnation, nonce, digest }
  return isShared ? new SharedPredictor(id, content) : { id, ...content }
}

/** The content of a predictor in arrays that no update changes. */
export function copyOfShared({ shared, parameters, average, state }: Predictor): Content {
  if (shared === undefined) return { parameters, average, state }
  return {
    parameters: parameters.map(block => block.slice()),
    average: average.map(block => block.slice()),
    state: state.map(block => block.slice())
  }
}

/** Whether all numbers are finite. The numbers of shared arrays always are. */
export function isFinitePredictor({ shared, parameters, average, state }: Predictor): boolean {
  return shared !== undefined || [parameters, average, state].every(blocks => blocks.every(isFiniteBlock))
}

/** The predictor of a header, from its parent and batch sum. The caller compares the digests. */
export function replayed(parent: Predictor, sum: Sum, { id, count, coverage }: Header, recipe: Recipe): Predictor {
  return nextPredictor(parent, { sum, count, contributorCount: coverage.size }, id, recipe)
}

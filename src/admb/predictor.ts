/**
 * Predictors and their derivation. A predictor is an immutable value. Its header states its parent and whose gradients the
 * update used. The headers of the last updates, its lineage, let a node determine which of its own gradients were used.
 */
import type { Averaging, BatchRule, Blocks, Digest, RuleState, UpdateRule } from '../learner/types.js'
import type { Contributor } from './contributors.js'
import { type Coverage, contributorCount } from './coverage.js'
import type { PredictorId } from './predictor-id.js'

/** w, w̄ and the rule's state. Immutable: share it, never write to it. */
export interface Predictor {
  readonly id: PredictorId
  /** w */
  readonly parameters: Blocks
  /** w̄, the running average used for predictions */
  readonly average: Blocks
  /** State of the update rule (sums of gradients, of squares, …). */
  readonly state: Blocks
}

/** How a predictor was computed. Contributor indices in the coverage refer to the table of the node that holds the header. */
export interface Header {
  readonly id: PredictorId
  readonly parent: PredictorId
  /** Number of gradients in the batch. */
  readonly count: number
  readonly coverage: Coverage
}

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

/** b of a predictor. */
export function batchOf(batch: number | BatchRule, { parameters }: Predictor): number {
  return typeof batch === 'number' ? batch : batch.of(parameters)
}

/** The common starting predictor: no updates, no origin. */
export function startingPredictor(parameters: Blocks, recipe: Recipe): Predictor {
  const layout = { blocks: parameters.map((block, i) => ({ name: String(i), length: block.length })) }
  const state = recipe.rule.stateLayout(layout).blocks.map(block => new Float32Array(block.length))
  const digest = recipe.digest([parameters, parameters, state])
  return { id: { updates: 0, origin: '', incarnation: 0, nonce: 0, digest }, parameters, average: parameters, state }
}

/**
 * Dekel et al., Algorithm 6: w ← rule(sum / count), w̄ ← average, v ← v + 1. Deterministic: replaying the batch on the parent
 * yields the same bits as at the origin.
 */
export function nextPredictor(
  parent: Predictor,
  batch: Batch,
  { origin, incarnation, nonce }: Contributor,
  recipe: Recipe
): Predictor {
  const updates = parent.id.updates
  const stepped: RuleState = recipe.rule.step(parent, batch.sum, batch.count, updates, batch.contributorCount)
  const average = recipe.averaging.average(parent.average, stepped.parameters, updates)
  const digest = recipe.digest([stepped.parameters, average, stepped.state])
  const id = { updates: updates + 1, origin, incarnation, nonce, digest }
  return { id, parameters: stepped.parameters, average, state: stepped.state }
}

/** The predictor that a header describes, from its parent and the sum of its batch. The caller compares the digests. */
export function replayed(parent: Predictor, sum: Blocks, { id, count, coverage }: Header, recipe: Recipe): Predictor {
  return nextPredictor(parent, { sum, count, contributorCount: contributorCount(coverage) }, id, recipe)
}

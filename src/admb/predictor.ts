/**
 * Predictors and how one comes from another. A predictor is an immutable value; the header that came with it says from
 * which parent and with whose gradients it was made, and the headers of the last steps, its lineage, tell a node which of
 * its own gradients are used up.
 */
import type { Averaging, Blocks, Digest, RuleState, UpdateRule } from '../learner/types.js'
import type { Coverage } from './coverage.js'
import type { PredictorId } from './predictor-id.js'

/** w, w̄ and the rule's state, named. Immutable: share it, never write to it. */
export interface Predictor {
  readonly id: PredictorId
  /** w */
  readonly parameters: Blocks
  /** w̄, the running average that serves predictions */
  readonly average: Blocks
  /** The update rule's own state (sums of gradients, of squares, …). */
  readonly state: Blocks
}

/** How a predictor was made. Contributor numbers in the coverage are those of the node that holds the header. */
export interface Header {
  readonly id: PredictorId
  readonly parent: PredictorId
  /** Gradients in the batch. */
  readonly count: number
  readonly coverage: Coverage
}

/** A batch: the gradient sum and how many gradients are in it. */
export interface Batch {
  readonly sum: Blocks
  readonly count: number
}

/** What turns a predictor and a batch into the next predictor; the same on every peer. */
export interface Recipe {
  readonly rule: UpdateRule
  readonly averaging: Averaging
  readonly digest: Digest
}

/** The predictor that everyone starts from: no updates, no origin. */
export function startingPredictor(parameters: Blocks, recipe: Recipe): Predictor {
  const layout = { blocks: parameters.map((block, i) => ({ name: String(i), length: block.length })) }
  const state = recipe.rule.stateLayout(layout).blocks.map(block => new Float32Array(block.length))
  const digest = recipe.digest([parameters, parameters, state])
  return { id: { updates: 0, origin: '', incarnation: 0, digest }, parameters, average: parameters, state }
}

/**
 * Dekel et al., Algorithm 6: w ← rule(sum / count), w̄ ← average, v ← v + 1. Deterministic, so whoever replays the batch on
 * the parent gets the same bits as its maker.
 */
export function nextPredictor(
  parent: Predictor,
  batch: Batch,
  contributor: { readonly origin: string; readonly incarnation: number },
  recipe: Recipe
): Predictor {
  const updates = parent.id.updates
  const stepped: RuleState = recipe.rule.step(parent, batch.sum, batch.count, updates)
  const average = recipe.averaging.average(parent.average, stepped.parameters, updates)
  const digest = recipe.digest([stepped.parameters, average, stepped.state])
  const id = { updates: updates + 1, origin: contributor.origin, incarnation: contributor.incarnation, digest }
  return { id, parameters: stepped.parameters, average, state: stepped.state }
}

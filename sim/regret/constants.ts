/**
 * The constants D, L and σ of the theorems, from a stream, and the rule with the steps that the theorems prescribe for them.
 *
 * Only the expected loss F must be L-smooth, as the proofs apply smoothness to F alone. The logistic loss has ∇²F(w) ≼ E[xxᵀ]/4
 * at every w. With p the probability of the label 1 under w, and p* under w*, ‖∇f‖² = (p − y)²‖x‖². Given x, its expectation is at
 * most max(p*, 1 − p*)·‖x‖² for every p. The mean of that is the σ² used here: it bounds the variance at every w, so that
 * predictors need not be confined to a set. L and the mean are computed on a sample of the stream that the run does not use.
 */

import { createRule, type Examples, hindsightOptimum, type UpdateRule } from '../../src/learning/index.js'
import { portableExp } from '../../src/numeric/exp.js'
import type { Inputs } from '../streams/inputs.js'
import { Recording } from '../streams/recording.js'

export interface Constants {
  /** ½‖w*‖² = D². */
  readonly D: number
  /** Smoothness of the expected loss. */
  readonly L: number
  /** Bound of the standard deviation of a gradient. */
  readonly sigma: number
}

/** Maximum numbers of inputs and of features in the sample. */
const MAX_ROWS = 2 ** 14
const MAX_FEATURES = 2 ** 20
const POWER_ITERATIONS = 30

/** The constants of the logistic loss on a stream; undefined for other losses, recorded inputs and streams that drift. */
export function constantsOf(inputs: Inputs): Constants | undefined {
  const { model, varies, fresh, dimension, features = dimension } = inputs
  if (model !== 'logistic' || varies || fresh === undefined) return undefined
  const rows = Math.min(MAX_ROWS, Math.ceil(MAX_FEATURES / features))
  const recording = new Recording(inputs, rows)
  const others = fresh()
  for (let row = 0; row < rows; row++) recording.add(others.next())
  const { examples } = recording
  const known = inputs.optimum?.[0]
  const optimum = Float64Array.from(known ?? hindsightOptimum(model, examples, { dimension }).weights)
  let variance = 0
  for (let row = 0; row < rows; row++) {
    // The label's distribution is known only with the optimum.
    const likelier = known ? 1 / (1 + portableExp(-Math.abs(score(known, examples, row)))) : 1
    variance += (likelier * squareOf(examples, row)) / rows
  }
  return {
    D: Math.sqrt(optimum.reduce((sum, weight) => sum + weight * weight, 0) / 2),
    L: largestEigenvalue(examples, dimension) / 4,
    sigma: Math.sqrt(variance)
  }
}

/**
 * Dual averaging with α_j = L + (σ/D)·√(j/b) after j updates. Unlike the rule `dual-averaging`, which counts gradients, it counts
 * updates, and uses the mean gradient of each batch.
 * @param batch b: the least number of gradients of a batch
 */
export function theoryRule(constants: Constants, batch: number): UpdateRule {
  const rule = createRule({ name: 'dual-averaging', ...constants })
  return {
    ...rule,
    step(previous, sum, count, updates) {
      const scaled = sum.map(block => block.map(gradient => (gradient * batch) / count))
      return rule.step(previous, scaled, batch, updates)
    }
  }
}

/** Largest eigenvalue of the mean of xxᵀ, by power iteration. */
function largestEigenvalue(examples: Examples, dimension: number): number {
  let vector = new Float64Array(dimension).fill(1)
  let norm = Math.sqrt(dimension)
  for (let i = 0; i < POWER_ITERATIONS; i++) {
    const next = new Float64Array(dimension)
    for (let row = 0; row < examples.size; row++) {
      const { indices, values, offsets } = examples
      const scale = score(vector, examples, row) / (norm * examples.size)
      for (let k = offsets[row]; k < offsets[row + 1]; k++) next[indices[k]] += scale * values[k]
    }
    vector = next
    norm = Math.sqrt(vector.reduce((sum, each) => sum + each * each, 0))
  }
  return norm
}

function score(weights: ArrayLike<number>, { indices, values, offsets }: Examples, row: number): number {
  let sum = 0
  for (let k = offsets[row]; k < offsets[row + 1]; k++) sum += weights[indices[k]] * values[k]
  return sum
}

/** ‖x‖² of a row. */
function squareOf({ values, offsets }: Examples, row: number): number {
  let sum = 0
  for (let k = offsets[row]; k < offsets[row + 1]; k++) sum += values[k] * values[k]
  return sum
}

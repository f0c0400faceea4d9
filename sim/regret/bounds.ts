/**
 * The regret bounds of the papers for the parameters of a run. Dekel et al., "Robust Distributed Online Prediction":
 * ψ(σ², m) = 2D²L + 2Dσ√m bounds the regret of one learner after m updates. Here every algorithm serves the average of its
 * predictors, so that all bounds have the form of Theorem 3: if ν inputs arrive per update, E R ≤ Σ_j (ν/j)·ψ(σ²/b, j). Only ν
 * depends on the algorithm (`AlgorithmBound.pace`).
 */
import type { Examples } from '../../src/learning/index.js'
import type { UpdatePace } from '../algorithms/definition.js'
import { algorithms } from '../algorithms/index.js'
import { averageOf, type Scenario } from '../scenario.js'
import type { Inputs } from '../streams/inputs.js'

interface BoundTerms {
  /** D with ½‖w*‖² ≤ D². */
  readonly radius: number
  /** L: smoothness of the loss. */
  readonly smoothness: number
  /** σ: standard deviation of a gradient. */
  readonly deviation: number
}

interface Measured {
  readonly terms: BoundTerms
  readonly inputs: number
  /** Inputs of each good period. */
  readonly stretches: readonly number[]
  /** Diameter of the tree, in edges. */
  readonly diameter: number
  /** Whether a node or a link failed. */
  readonly isFaulty: boolean
}

interface Bound {
  /** Bound on the expected regret. */
  readonly regret: number
  /** Whether the bound covers the inputs of good periods only. */
  readonly goodPeriodsOnly: boolean
}

/**
 * The bound for a run. Undefined if inputs are not independent draws; if the loss is not logistic (gradients of squared loss
 * have no bounded deviation, since the parameters are not confined); if the theorems do not cover the rule, the average or the
 * algorithm; if b or T adapts; if message delays are unbounded; if the tree changes all the time; and under faults that the theorem excludes.
 */
export function boundOf(scenario: Scenario, inputs: Inputs, measured: Measured): Bound | undefined {
  const { algorithm, topology, rule, nodes, batch, period, interval, starts } = scenario
  if (scenario.batchMax !== undefined || scenario.autoPeriod) return undefined
  if (inputs.varies || inputs.model !== 'logistic' || averageOf(scenario) !== 'uniform') return undefined
  if (rule !== 'dual-averaging' && rule !== 'mirror-descent') return undefined
  const { bound } = algorithms[algorithm]
  if (bound === undefined) return undefined
  const maxDelay = bound.usesNetwork ? maxDelayOf(scenario) : 0
  if (!Number.isFinite(maxDelay)) return undefined
  const { diameter, terms, stretches, isFaulty } = measured
  const pace = bound.pace({ nodes, batch, diameter, period, maxDelay, rate: nodes / interval })
  if (bound.scope === 'good-periods') {
    const hasGoodPeriod = stretches.some(count => count > 0)
    if (starts === 'distinct' || topology === 'overlay' || !hasGoodPeriod) return undefined
    return { regret: regretBound(terms, pace, stretches), goodPeriodsOnly: true }
  }
  if (isFaulty && bound.scope !== 'always') return undefined
  return { regret: regretBound(terms, pace, [measured.inputs]), goodPeriodsOnly: false }
}

/**
 * The bound on the expected regret over several stretches of inputs. Between stretches only the updates made so far are
 * guaranteed; the last inputs of a stretch, too few for an update, cost as much as those of the last update.
 * @param stretches numbers of inputs
 */
export function regretBound(
  { radius, smoothness, deviation }: BoundTerms,
  { batch, inputsPerUpdate, learners }: UpdatePace,
  stretches: readonly number[]
): number {
  const constant = 2 * radius * radius * smoothness
  const growing = (2 * radius * deviation) / Math.sqrt(batch)
  let sum = 0
  let update = 1
  for (const inputs of stretches) {
    let left = inputs / learners
    for (; left > inputsPerUpdate; left -= inputsPerUpdate) {
      sum += (inputsPerUpdate / update) * (constant + growing * Math.sqrt(update))
      update++
    }
    sum += (left / update) * (constant + growing * Math.sqrt(update))
  }
  return learners * sum
}

/** Maximum delay of a message in virtual milliseconds; Infinity if messages may be lost or delays are unbounded. */
function maxDelayOf({ latency, delay, loss, reorder, linkSpread, bandwidth, nodeBandwidth }: Scenario): number {
  if (loss > 0 || reorder > 0 || linkSpread > 0 || bandwidth + nodeBandwidth > 0) return Number.POSITIVE_INFINITY
  switch (delay) {
    case 'constant':
      return latency
    case 'uniform':
      return 2 * latency
    case 'exponential':
    case 'log-normal':
      return Number.POSITIVE_INFINITY
    default:
      return delay satisfies never
  }
}

/** Estimates the bound terms from the inputs: for the logistic loss ‖∇f‖ ≤ ‖x‖, and the smoothness is at most ‖x‖²/4. */
export class InputMoments {
  #count = 0
  #squareSum = 0
  #maxSquare = 0

  /** Adds the single row of `examples`. */
  add({ values, offsets }: Examples): void {
    const length = offsets[1]
    let square = 0
    for (let i = 0; i < length; i++) square += values[i] * values[i]
    this.#count++
    this.#squareSum += square
    if (square > this.#maxSquare) this.#maxSquare = square
  }

  terms(optimum: Float32Array): BoundTerms {
    const square = optimum.reduce((sum, weight) => sum + weight * weight, 0)
    return {
      radius: Math.sqrt(square / 2),
      smoothness: this.#maxSquare / 4,
      deviation: Math.sqrt(this.#squareSum / this.#count)
    }
  }
}

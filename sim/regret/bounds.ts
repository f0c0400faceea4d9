/**
 * The regret bounds of the papers for the parameters of a run. Dekel et al., "Robust Distributed Online Prediction":
 * ψ(σ², m) = 2D²L + 2Dσ√m bounds the regret of one learner after m updates. If ν inputs arrive per update, then by Theorem 1
 * E R ≤ ν·ψ(σ²/b, ⌈m/ν⌉) for algorithms that predict with the newest predictor, and by Theorem 3 E R ≤ Σ_j (ν/j)·ψ(σ²/b, j) for
 * those that predict with the average. Only ν depends on the algorithm (`AlgorithmBound.pace`).
 */
import type { UpdatePace } from '../algorithms/definition.js'
import { algorithms } from '../algorithms/index.js'
import type { BoundTerms } from '../result.js'
import { averageOf, type Scenario } from '../scenario.js'
import type { Inputs } from '../streams/inputs.js'
import type { Topology } from '../topology.js'
import { type Constants, constantsOf } from './constants.js'

interface Measured {
  readonly inputs: number
  /** Inputs of each good period. */
  readonly stretches: readonly number[]
  /** Whether a node or a link failed. */
  readonly isFaulty: boolean
}

export interface Bound {
  /** Bound on the expected regret. */
  readonly regret: number
  readonly terms: BoundTerms
  /** Whether the bound covers the inputs of good periods only. */
  readonly goodPeriodsOnly: boolean
}

/**
 * The bound for a run. Undefined if inputs are not independent draws; if the loss is not logistic (gradients of squared loss
 * have no bounded deviation, since the parameters are not confined); if the theorems do not cover the rule, the average or the
 * algorithm; if b or T adapts; if gradients are clipped, bounded or noisy, or nodes hostile; if message delays are unbounded; if the
 * tree changes all the time; and under faults that the theorem excludes.
 */
export function boundOf(scenario: Scenario, inputs: Inputs, topology: Topology, measured: Measured): Bound | undefined {
  const { algorithm, rule, starts, speedSpread, trust } = scenario
  const { bound } = algorithms[algorithm]
  const average = averageOf(scenario)
  if (
    bound === undefined ||
    scenario.batchMax !== undefined ||
    scenario.batchPower !== undefined ||
    scenario.autoPeriod
  )
    return undefined
  if (scenario.localSteps !== undefined || scenario.clip !== undefined || scenario.adversaries.nodes > 0)
    return undefined
  if (trust.bounded || trust.rate !== undefined || (bound.needsEqualRates && speedSpread > 0)) return undefined
  if (rule !== 'theory' && rule !== 'dual-averaging' && rule !== 'mirror-descent') return undefined
  if (bound.usesNetwork && (topology.links || !Number.isFinite(maxDelayOf(scenario)))) return undefined
  const goodPeriodsOnly = bound.scope === 'good-periods'
  const stretches = goodPeriodsOnly ? measured.stretches : [measured.inputs]
  if (goodPeriodsOnly) {
    const hasGoodPeriod = stretches.some(count => count > 0)
    if (average !== 'uniform' || starts === 'distinct' || scenario.updateTime > 0 || !hasGoodPeriod) return undefined
  } else if (average !== 'uniform' && average !== 'none') return undefined
  if (measured.isFaulty && bound.scope === 'fault-free') return undefined
  const constants = constantsOf(inputs)
  if (constants === undefined) return undefined
  const pace = bound.pace(networkOf(scenario, topology))
  const terms = (counts: readonly number[]): Terms =>
    average === 'none' ? theorem1(constants, pace, counts[0]) : theorem3(constants, pace, counts)
  const [smoothness, deviation] = terms(stretches)
  const { batch: b, inputsPerUpdate: nu, learners } = pace
  const informativeFrom = firstInformative(learners * nu, inputs => terms([inputs]))
  const theorem = average === 'none' ? 1 : 3
  return {
    regret: smoothness + deviation,
    terms: { theorem, ...constants, b, nu, smoothness, deviation, informativeFrom },
    goodPeriodsOnly
  }
}

/** The least number of inputs, a multiple of `step`, for which the sum of the terms is below log 2 per input. It decreases per input. */
function firstInformative(step: number, termsOf: (inputs: number) => Terms): number {
  const isInformative = (updates: number) => {
    const [smoothness, deviation] = termsOf(updates * step)
    return smoothness + deviation < Math.LN2 * updates * step
  }
  let above = 1
  while (!isInformative(above)) above *= 2
  let below = above >> 1
  while (above - below > 1) {
    const middle = (above + below) >> 1
    if (isInformative(middle)) above = middle
    else below = middle
  }
  return Math.ceil(above * step)
}

/** Gradients of a batch: b, or what the algorithm makes of it. */
export function batchOf(scenario: Scenario, topology: Topology): number {
  return algorithms[scenario.algorithm].bound?.pace(networkOf(scenario, topology)).batch ?? scenario.batch
}

function networkOf(scenario: Scenario, { diameter, height }: Topology) {
  const { nodes, batch, period, interval, updateTime } = scenario
  return { nodes, batch, diameter, height, period, updateTime, maxDelay: maxDelayOf(scenario), rate: nodes / interval }
}

type Terms = readonly [smoothness: number, deviation: number]

/** Both terms of ν·ψ(σ²/b, ⌈m/ν⌉), for each learner. */
export function theorem1({ D, L, sigma }: Constants, pace: UpdatePace, inputs: number): Terms {
  const { batch, inputsPerUpdate, learners } = pace
  const updates = Math.ceil(inputs / learners / inputsPerUpdate)
  const served = learners * inputsPerUpdate
  return [served * 2 * D * D * L, served * 2 * D * sigma * Math.sqrt(updates / batch)]
}

/**
 * Both terms of Σ_j (ν/j)·ψ(σ²/b, j), over several stretches of inputs. Between stretches only the updates made so far are
 * guaranteed. Of the inputs of a stretch that are too few for an update only these count, and not ν.
 * @param stretches numbers of inputs
 */
export function theorem3({ D, L, sigma }: Constants, pace: UpdatePace, stretches: readonly number[]): Terms {
  const { batch, inputsPerUpdate, learners } = pace
  let byUpdate = 0
  let byRoot = 0
  let update = 1
  const serve = (inputs: number) => {
    byUpdate += inputs / update
    byRoot += inputs / Math.sqrt(update)
  }
  for (const inputs of stretches) {
    let left = inputs / learners
    for (; left > inputsPerUpdate; left -= inputsPerUpdate) {
      serve(inputsPerUpdate)
      update++
    }
    serve(left)
  }
  return [learners * byUpdate * 2 * D * D * L, (learners * byRoot * 2 * D * sigma) / Math.sqrt(batch)]
}

/** The constants of a bound and its terms, as one line. */
export function describeTerms({ D, L, sigma, b, nu, informativeFrom, ...terms }: BoundTerms): string {
  const numbers = [nu, terms.smoothness, terms.deviation, informativeFrom]
  const [count, first, second, from] = numbers.map(value => Math.round(value).toLocaleString('en-US'))
  const constants = `D ${D.toPrecision(4)}, L ${L.toPrecision(4)}, σ ${sigma.toPrecision(4)}`
  return `${constants}, b ${b.toLocaleString('en-US')}, ν ${count}; ${first} from L and ${second} from σ; below log 2 per input from ${from} inputs`
}

/** Maximum delay of a message in virtual milliseconds; Infinity if messages may be lost or delays are unbounded. */
export function maxDelayOf({ latency, delay, loss, reorder, linkSpread, bandwidth, nodeBandwidth }: Scenario): number {
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

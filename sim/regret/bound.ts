/** The theorem's bound for a run, where its conditions hold. */
import { type BoundTerms, paceOf, regretBound } from '../bounds.js'
import type { Scenario } from '../scenario.js'
import type { Inputs } from '../streams/inputs.js'

export interface Measured {
  readonly terms: BoundTerms
  readonly inputs: number
  /** Inputs of the good periods. */
  readonly stretches: readonly number[]
  /** Of the tree, in edges. */
  readonly diameter: number
  /** Whether a node or a link failed. */
  readonly isFaulty: boolean
}

export interface Bound {
  /** On the expected regret. */
  readonly regret: number
  /** Whether it speaks of the inputs of good periods alone. */
  readonly countsGood: boolean
}

/**
 * None where inputs are no independent draws, where the loss is not logistic (of squared loss the gradients have no bounded
 * deviation, since parameters are not confined), for a rule or an average of which the theorems do not speak, for what may
 * wait for a message without end, for a tree that is mended all the time, and for faults that the algorithm is not made for.
 */
export function boundOf(scenario: Scenario, inputs: Inputs, measured: Measured): Bound | undefined {
  const { algorithm, topology, rule, average, nodes, batch, period, interval, starts } = scenario
  if (inputs.varies || inputs.model !== 'logistic' || average !== 'uniform') return undefined
  if (rule !== 'dual-averaging' && rule !== 'mirror-descent') return undefined
  const isAlone = algorithm === 'serial' || algorithm === 'isolated'
  const longest = isAlone ? 0 : longestDelay(scenario)
  const { diameter, terms, stretches, isFaulty } = measured
  const pace = paceOf(algorithm, { nodes, batch, diameter, period, longest, rate: nodes / interval })
  if (pace === undefined || !Number.isFinite(longest)) return undefined
  if (algorithm === 'admb') {
    const hasGood = stretches.some(count => count > 0)
    if (starts === 'distinct' || topology === 'overlay' || !hasGood) return undefined
    return { regret: regretBound(terms, pace, stretches), countsGood: true }
  }
  if (isFaulty && algorithm !== 'serial') return undefined
  return { regret: regretBound(terms, pace, [measured.inputs]), countsGood: false }
}

/** In virtual milliseconds; Infinity where messages are lost, or take times without a known limit. */
function longestDelay({ latency, delay, loss, reorder, linkSpread, bandwidth }: Scenario): number {
  if (loss > 0 || reorder > 0 || linkSpread > 0 || bandwidth > 0) return Number.POSITIVE_INFINITY
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

/**
 * Running averages of the predictors used. All kinds but `none` are w̄ ← w̄ + γ·(w − w̄) with a weight γ that depends on the
 * number of updates only, computed with + − × ÷ alone so that every peer's average has equal bits.
 */
import { OptionError } from './errors.js'
import { portableExp } from './exp.js'
import { describe, resolveNumbers } from './options.js'
import type { Averaging, Blocks } from './types.js'

/** Which average, with its options. */
export type AveragingSpec =
  /** The paper's: the mean of all predictors, w̄ ← (v·w̄ + w)/(v+1). Right for a stream that does not change. */
  | { readonly name: 'uniform' }
  /** Weights halve every `halfLife` updates (default 1000); the plain mean until that many have been made. */
  | { readonly name: 'exponential'; readonly halfLife?: number }
  /**
   * Polynomial decay (Shamir and Zhang, ICML 2013, section 4): the newest weighs (1+decay)/(v+1+decay), so about the last
   * 1/(1+decay) of all updates counts. `decay` is 15 by default; 0 is the plain mean. The default.
   */
  | { readonly name: 'tail'; readonly decay?: number }
  /** No average: the newest predictor in its place, for models of which a copy would not fit. */
  | { readonly name: 'none' }

export type AveragingName = AveragingSpec['name']
export const averagingNames: readonly AveragingName[] = ['uniform', 'exponential', 'tail', 'none']
/** Chosen by measurement: best or close to it on still data, and much better than the plain mean on drifting data. */
export const defaultAveraging: AveragingSpec = { name: 'tail' }

/** An averaging that tells its weight, so that a sparse trainer can apply it lazily. */
export interface WeightedAveraging extends Averaging {
  /** γ in (0, 1] for the predictor made by the update that `updates` others went before. */
  weight(updates: number): number
}

/** @throws OptionError for an unknown name or option, or a value out of range */
export function createAveraging(spec: AveragingSpec = defaultAveraging): WeightedAveraging {
  switch (spec.name) {
    case 'uniform':
      resolveNumbers('average uniform', {}, spec)
      return weighted(spec.name, {}, updates => 1 / (updates + 1))
    case 'exponential': {
      const options = { halfLife: { preset: 1000, least: 0, above: true } } as const
      const values = resolveNumbers('average exponential', options, spec)
      const least = 1 - portableExp(-Math.LN2 / values.halfLife)
      return weighted(spec.name, values, updates => Math.max(least, 1 / (updates + 1)))
    }
    case 'tail': {
      const values = resolveNumbers('average tail', { decay: { preset: 15, least: 0 } } as const, spec)
      return weighted(spec.name, values, updates => (1 + values.decay) / (updates + 1 + values.decay))
    }
    case 'none':
      resolveNumbers('average none', {}, spec)
      return { name: spec.name, description: 'none()', weight: () => 1, average: (_, parameters) => [...parameters] }
    default:
      throw new OptionError(
        `unknown average ${String((spec satisfies never as AveragingSpec).name)}: use one of ${averagingNames.join(', ')}`
      )
  }
}

function weighted(
  name: string,
  values: Record<string, number>,
  weight: (updates: number) => number
): WeightedAveraging {
  return {
    name,
    description: describe(name, values),
    weight,
    average: (previous, parameters, updates) => mix(previous, parameters, weight(updates))
  }
}

function mix(previous: Blocks, parameters: Blocks, weight: number): Float32Array[] {
  return previous.map((before, k) => {
    const next = before.slice()
    mixInto(next, parameters[k], weight)
    return next
  })
}

/** One block's average, in place. @param weight the averaging's, see there */
export function mixInto(average: Float32Array, now: Float32Array, weight: number): void {
  for (let i = 0; i < average.length; i++) average[i] += weight * (now[i] - average[i])
}

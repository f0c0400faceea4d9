/**
 * The regret bounds of the papers for a run's parameters, to print beside what was measured. Dekel et al., "Robust
 * Distributed Online Prediction": ψ(σ², m) = 2D²L + 2Dσ√m bounds what m updates of one learner cost. Here every algorithm
 * serves the average of its predictors, so that all bounds have the form of Theorem 3: where ν inputs pass for each update,
 * E R ≤ Σ_j (ν/j)·ψ(σ²/b, j). Only ν differs.
 */
import type { AlgorithmName } from './algorithms/index.js'

export interface BoundTerms {
  /** D with ½‖w*‖² ≤ D². */
  readonly radius: number
  /** L: smoothness of the loss. */
  readonly smoothness: number
  /** σ: deviation of a gradient. */
  readonly deviation: number
}

export interface Pace {
  /** b: gradients an update. */
  readonly batch: number
  /** ν: inputs of the whole network within which a further update is everywhere. */
  readonly inputsPerUpdate: number
  /** Learners that do this side by side, each with its part of the inputs. */
  readonly learners: number
}

export interface NetworkTerms {
  readonly nodes: number
  /** b */
  readonly batch: number
  /** Edges on the longest path of the tree. */
  readonly diameter: number
  /** T in virtual milliseconds. */
  readonly period: number
  /** The longest time that a message takes, in virtual milliseconds. */
  readonly longest: number
  /** M: inputs of all nodes in a virtual millisecond. */
  readonly rate: number
}

/**
 * What the theorems promise of an algorithm's pace while nothing fails; undefined where they promise nothing: the paper's
 * letter of ADMB need not agree, elections and a lock's queue have no longest wait.
 */
export function paceOf(
  algorithm: AlgorithmName,
  { nodes, batch, diameter, period, longest, rate }: NetworkTerms
): Pace | undefined {
  switch (algorithm) {
    case 'serial':
      return { batch, inputsPerUpdate: batch, learners: 1 }
    case 'isolated':
      return { batch, inputsPerUpdate: batch, learners: nodes }
    case 'dmb': {
      // Each node takes an equal share of the batch, and μ inputs pass while the sum goes up and down the tree.
      const shares = nodes * Math.max(1, Math.round(batch / nodes))
      return { batch: shares, inputsPerUpdate: shares + 2 * diameter * longest * rate, learners: 1 }
    }
    case 'mawo':
      return { batch, inputsPerUpdate: batch + (period + 2 * longest) * rate, learners: 1 }
    case 'admb':
      // t + 2 of the theorem: a period, and a message's time to go out and to come in.
      return { batch, inputsPerUpdate: batch + 2 * (period + 2 * longest) * diameter * rate, learners: 1 }
    case 'mawo-election':
    case 'mawo-database':
    case 'admb-sender':
      return undefined
    default:
      return algorithm satisfies never
  }
}

/**
 * The bound on the expected regret over stretches of inputs, between which nothing is promised but that no update is lost:
 * the inputs of a stretch that do not suffice for an update cost as much as those before it.
 * @param stretches numbers of inputs
 */
export function regretBound(
  { radius, smoothness, deviation }: BoundTerms,
  { batch, inputsPerUpdate, learners }: Pace,
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

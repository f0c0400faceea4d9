/**
 * Differential privacy of the inputs of one peer: clipped gradients, and Gaussian noise on its own sums. The unit is a release:
 * a noisy sum that contains a given input. docs/guides/privacy.md defines what is protected.
 *
 * The accountant of differential privacy for the Gaussian mechanism. A release with noise of standard deviation z · clip has a
 * Rényi divergence of at most α/(2z²) for every order α > 1 (Mironov, "Rényi Differential Privacy", CSF 2017, Proposition 7;
 * Mironov, Talwar, Zhang, "Rényi Differential Privacy of the Sampled Gaussian Mechanism", 2019, with sampling rate 1). Releases
 * of one input add up. So a single number describes all orders: ρ, the divergence of order α being at most ρ·α. Inputs are not
 * sampled at random, so there is no amplification by sampling.
 */
import { OptionError, rangeOf } from './options.js'
import type { Blocks } from './types.js'

/** The protection of each input of a peer. */
export interface PrivacyOptions {
  /** ε, above 0: how much the releases of an input may reveal of it. */
  readonly epsilon: number
  /** δ, at least 1e-12 and below 1: probability with which they may reveal more. Below 1 / inputs. */
  readonly delta: number
  /** Largest Euclidean norm of an input's gradient, above 0. */
  readonly clip: number
  /** N: how often an input may be released, such as in N passes. @default 1 */
  readonly releases?: number
}

const RANGES = {
  epsilon: { min: 0, isMinExcluded: true },
  // Box–Muller's numbers of 53 bits leave out tails of 1e-17.
  delta: { min: 1e-12, below: 1 },
  clip: { min: 0, isMinExcluded: true },
  releases: { min: 1 }
} as const

/** The accounted mechanism. */
export class Privacy {
  readonly options: Required<PrivacyOptions>
  /** Standard deviation of the noise of each weight of a sum. */
  readonly deviation: number
  /** ρ of a release. */
  readonly rho: number
  /** ρ that (ε, δ) allows. */
  readonly budget: number

  /** @throws OptionError for a value that is missing, unknown or out of range */
  constructor({ epsilon, delta, clip, releases = 1, ...others }: PrivacyOptions) {
    this.options = { epsilon, delta, clip, releases }
    const [unknown] = Object.keys(others)
    if (unknown !== undefined) throw new OptionError(`dp: unknown option ${unknown}; expected one of ${NAMES}`)
    for (const [key, range] of Object.entries(RANGES)) {
      const value: unknown = this.options[key as keyof PrivacyOptions]
      const { min, isMinExcluded = false, below = Number.POSITIVE_INFINITY } = range as Range
      if (typeof value === 'number' && (isMinExcluded ? value > min : value >= min) && value < below) continue
      const given = value === undefined ? 'which is missing' : `not ${String(value)}`
      const help = rangeOf({ default: undefined, help: '', ...range })
      throw new OptionError(`dp: ${key} must be a number ${help}, ${given}`)
    }
    if (!Number.isInteger(releases)) throw new OptionError(`dp: releases must be a whole number, not ${releases}`)
    this.budget = rhoFor(epsilon, delta)
    const multiplier = Math.sqrt(releases / (2 * this.budget))
    this.deviation = multiplier * clip
    this.rho = rhoOf(multiplier)
  }

  /** ε that releases with a total of ρ cost. */
  epsilonOf(rho: number): number {
    return epsilonOf(rho, this.options.delta)
  }

  /** Whether releases with a total of ρ are within the budget, up to rounding. */
  allows(rho: number): boolean {
    return rho <= this.budget * (1 + 1e-9)
  }
}

interface Range {
  readonly min: number
  readonly isMinExcluded?: boolean
  readonly below?: number
}

const NAMES = Object.keys(RANGES).join(', ')

/**
 * Adds noise to the weights of a gradient sum, its first block, those without a gradient included. Other blocks contain counts.
 * @param normal draws from the standard normal distribution
 */
export function addNoise([weights]: Blocks, deviation: number, normal: () => number): void {
  for (let i = 0; i < weights.length; i++) weights[i] += deviation * normal()
}

/** ρ of a release. @param multiplier z: standard deviation of the noise, divided by the most that an input changes a sum */
export function rhoOf(multiplier: number): number {
  return 1 / (2 * multiplier * multiplier)
}

/** ε by the divergence of one order: Canonne, Kamath, Steinke, "The Discrete Gaussian", 2020, Proposition 12. */
function epsilonAt(order: number, divergence: number, delta: number): number {
  return divergence + Math.log1p(-1 / order) - (Math.log(delta) + Math.log(order)) / (order - 1)
}

/**
 * Least ε for which (ε, δ)-differential privacy follows from divergences.
 * @param divergences by their orders α > 1
 */
export function epsilonFrom(
  divergences: Iterable<readonly [order: number, divergence: number]>,
  delta: number
): number {
  let least = Number.POSITIVE_INFINITY
  for (const [order, divergence] of divergences) least = Math.min(least, epsilonAt(order, divergence, delta))
  return Math.max(0, least)
}

/** Steps of the search for the best order, by a factor of 4 in each ten. */
const ORDER_STEPS = 400

/**
 * ε of (ε, δ)-differential privacy after releases with a total of ρ. Every order gives a valid ε, so a search that misses the best one
 * gives a larger ε, never one that is too small.
 */
export function epsilonOf(rho: number, delta: number): number {
  if (rho <= 0) return 0
  // The best order by Proposition 3 of Mironov, near which that of the tighter conversion lies.
  const near = Math.sqrt(-Math.log(delta) / rho)
  const orders = Array.from({ length: ORDER_STEPS + 1 }, (_, i) => 1 + near * 16 ** (i / (ORDER_STEPS / 2) - 1))
  return epsilonFrom(
    orders.map(order => [order, rho * order]),
    delta
  )
}

/** Largest ρ that (ε, δ) allows, rounded down. */
export function rhoFor(epsilon: number, delta: number): number {
  let [least, most] = [0, 1]
  while (epsilonOf(most, delta) <= epsilon) most *= 2
  for (let i = 0; i < 60; i++) {
    const middle = (least + most) / 2
    if (epsilonOf(middle, delta) <= epsilon) least = middle
    else most = middle
  }
  return least
}

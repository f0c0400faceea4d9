/**
 * The paper's step-size schedule α_j = L + (σ/D)·√(j/b), in a form that counts gradients instead of batches. A batch on
 * a real network has at least b gradients, sometimes several times b; each gradient should weigh the same whichever
 * batch it came in. With M the largest batch so far and N all gradients so far, M·α = L·M + (σ/D)·√N: for batches of
 * exactly b that is the paper's schedule (M = b, N = j·b), and a larger batch never makes a step longer than 1/L.
 */
import { resolveNumbers } from '../options.js'

export interface ScheduleOptions {
  /** Smoothness L of the loss, in loss per squared parameter length. Default 1. */
  readonly L?: number
  /** Standard deviation σ of one input's gradient. Default 1. */
  readonly sigma?: number
  /** Size D of the set that holds the optimum (½‖w*‖² ≤ D²). Default 3. */
  readonly D?: number
  /** Radius of the Euclidean ball that parameters are projected onto. Default: none. */
  readonly radius?: number
}

const options = {
  L: { preset: 1, least: 0, above: true },
  sigma: { preset: 1, least: 0 },
  D: { preset: 3, least: 0, above: true },
  radius: { preset: undefined, least: 0, above: true }
} as const

export interface ScheduleValues {
  readonly L: number
  readonly sigma: number
  readonly D: number
  readonly radius: number | undefined
}

/** @throws OptionError */
export function scheduleValues(owner: string, given: object): ScheduleValues {
  return resolveNumbers(owner, options, given)
}

/** The schedule's part of a rule's state: N split in two so that float32 holds it exactly up to 2^44, and M. */
export const scheduleBlock = { name: 'schedule', length: 3 } as const
const UNIT = 2 ** 20

/** The state after a batch of `count` gradients. */
export function advance(block: Float32Array, count: number): Float32Array {
  const low = block[1] + count
  const carried = Math.floor(low / UNIT)
  return Float32Array.of(block[0] + carried, low - carried * UNIT, Math.max(block[2], count))
}

/** M·α = L·M + (σ/D)·√N: what a sum (not a mean) of gradients is divided by. */
export function divisor(block: Float32Array, { L, sigma, D }: ScheduleValues): number {
  return L * block[2] + (sigma / D) * Math.sqrt(block[0] * UNIT + block[1])
}

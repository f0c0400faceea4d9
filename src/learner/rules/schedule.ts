/**
 * The paper's step-size schedule α_j = L + (σ/D)·√(j/b), in a form that counts gradients instead of batches. A batch on a
 * real network has at least b gradients, sometimes several times b, and every gradient should have the same weight. With M the
 * largest batch so far and N the number of gradients so far, M·α = L·M + (σ/D)·√N. For batches of exactly b that is the
 * paper's schedule (M = b, N = j·b), and a larger batch never makes a step longer than 1/L.
 */
import { type Resolved, radiusOption } from '../options.js'

export interface ScheduleOptions {
  /** Smoothness L of the loss, in loss per squared parameter length. @default 1 */
  readonly L?: number
  /** Standard deviation σ of one input's gradient. @default 1 */
  readonly sigma?: number
  /** Size D of the set that holds the optimum (½‖w*‖² ≤ D²). @default 3 */
  readonly D?: number
  /** Radius of the Euclidean ball that parameters are projected onto. @default none */
  readonly radius?: number
}

/** The options of the rules that use the schedule. */
export const scheduleOptions = {
  L: { default: 1, min: 0, isMinExcluded: true, help: 'smoothness of the loss (64 for regression)' },
  sigma: { default: 1, min: 0, help: "standard deviation of one input's gradient" },
  D: { default: 3, min: 0, isMinExcluded: true, help: 'size of the set that holds the optimum' },
  ...radiusOption
} as const

export type ScheduleValues = Resolved<typeof scheduleOptions>

/** The schedule's part of a rule's state: N split in two so that float32 holds it exactly up to 2^44, and M. */
export const scheduleBlock = { name: 'schedule', length: 3 } as const
const UNIT = 2 ** 20

/** The state after a batch of `count` gradients. */
export function advance(block: Float32Array, count: number): Float32Array {
  const low = block[1] + count
  const carried = Math.floor(low / UNIT)
  return Float32Array.of(block[0] + carried, low - carried * UNIT, Math.max(block[2], count))
}

/** M·α = L·M + (σ/D)·√N: the divisor of a sum (not a mean) of gradients. */
export function divisor(block: Float32Array, { L, sigma, D }: ScheduleValues): number {
  return L * block[2] + (sigma / D) * Math.sqrt(block[0] * UNIT + block[1])
}

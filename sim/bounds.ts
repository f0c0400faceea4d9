/**
 * The regret bounds of the papers for a run's parameters, to print beside what was measured. Dekel et al., "Robust
 * Distributed Online Prediction": ψ(σ², m) = 2D²L + 2Dσ√m; Theorem 1 for DMB; Theorem 3 for ADMB.
 */

export interface BoundTerms {
  /** D with ½‖w*‖² ≤ D². */
  readonly radius: number
  /** L: smoothness of the loss. */
  readonly smoothness: number
  /** σ: deviation of a gradient. */
  readonly deviation: number
}

/** ψ for gradients of variance σ²/b over m updates. */
function serialRegret({ radius, smoothness, deviation }: BoundTerms, batch: number, updates: number): number {
  return 2 * radius * radius * smoothness + 2 * radius * (deviation / Math.sqrt(batch)) * Math.sqrt(updates)
}

/** One learner, b gradients an update: b·ψ(σ²/b, m/b). */
export function serialBound(terms: BoundTerms, batch: number, inputs: number): number {
  return batch * serialRegret(terms, batch, Math.ceil(inputs / batch))
}

/** k learners alone. */
export function isolatedBound(terms: BoundTerms, batch: number, inputs: number, nodes: number): number {
  return nodes * serialBound(terms, batch, inputs / nodes)
}

/** Theorem 1; μ inputs pass while a sum is made. */
export function dmbBound(terms: BoundTerms, batch: number, inputs: number, passing: number): number {
  return (batch + passing) * serialRegret(terms, batch, Math.ceil(inputs / (batch + passing)))
}

/**
 * Theorem 3 with ν = b + 2(t + 2)·d·M: Σ_{j ≤ m/ν} (ν/j)·ψ(σ²/b, j).
 * @param periodAndDelays t + 2 of the theorem: the period and the time that a hop takes, in time-units
 * @param perUnit M: inputs of all nodes in a time-unit
 */
export function admbBound(
  terms: BoundTerms,
  {
    batch,
    inputs,
    diameter,
    periodAndDelays,
    perUnit
  }: { batch: number; inputs: number; diameter: number; periodAndDelays: number; perUnit: number }
): number {
  const nu = batch + 2 * periodAndDelays * diameter * perUnit
  let sum = 0
  for (let j = 1; j <= Math.ceil(inputs / nu); j++) sum += (nu / j) * serialRegret(terms, batch, j)
  return sum
}

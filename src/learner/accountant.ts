/**
 * The accountant of differential privacy for the Gaussian mechanism. A release with noise of standard deviation z · clip has a Rényi
 * divergence of at most α/(2z²) for every order α > 1 (Mironov, "Rényi Differential Privacy", CSF 2017, Proposition 7; Mironov,
 * Talwar, Zhang, "Rényi Differential Privacy of the Sampled Gaussian Mechanism", 2019, with sampling rate 1). Releases of one input add
 * up. So a single number describes all orders: ρ, the divergence of order α being at most ρ·α. Inputs are not sampled at random, so
 * there is no amplification by sampling.
 */

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

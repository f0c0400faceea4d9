/**
 * The penalty λ/2·‖w‖² as a decay that a weight makes up for when it has a gradient again (lazily, as in Carpenter, "Lazy Sparse
 * Stochastic Gradient Descent for Regularized Multinomial Logistic Regression", 2008). Its gradient λ·w would change every weight in
 * every update.
 *
 * In an update of n gradients, w follows the flow of the penalty under AdaGrad's metric for a time t = λ·√n/√(initial + a):
 * dw/dt = −max(step, growth·|w|)·w. The solution for k updates is that for a time k·t, so it does not matter when a decay is made up.
 */
import { portableExp } from '../exp.js'

/**
 * The solution after a time t.
 * @param step, growth as in AdaGrad, step > 0
 */
export function decayed(weight: number, t: number, step: number, growth: number): number {
  const size = Math.abs(weight)
  if (growth * size <= step) return weight * portableExp(-step * t)
  // 1/|w| grows by growth in a unit of time, until growth·|w| = step.
  const last = step / growth
  const until = (1 / last - 1 / size) / growth
  return t <= until ? weight / (1 + growth * size * t) : Math.sign(weight) * last * portableExp(-step * (t - until))
}

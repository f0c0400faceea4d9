/** The optimum of the stream `synthetic`. */
import { type SyntheticOptions, TRUE_NORM, trueWeights } from '../../src/data/formats/builtins.js'

interface SyntheticOptimum {
  /** Minimiser of the expected loss over all linear predictors, one weight per feature, including the constant one. */
  readonly weights: Float64Array
  /** Expected loss of the minimiser: logistic loss in nats, or half the squared error. */
  readonly loss: number
}

/**
 * The best linear predictor of the stream with these options, and its expected loss.
 *
 * For flipped labels, the minimiser is c w* by symmetry. The factor c solves a one-dimensional convex problem in the margin
 * m = w*·x ~ N(0, |w*|²), by quadrature and Newton's method. Without flips, c = 1.
 */
export function syntheticOptimum(options: SyntheticOptions = {}): SyntheticOptimum {
  const { target = 'class', dimension = 20, seed = 0, constant = false } = options
  const { noise = target === 'number' ? 0.1 : 0 } = options
  const weights = trueWeights(dimension, seed)
  const { scale, loss } = target === 'class' ? logisticOptimum(noise) : { scale: 1, loss: (noise * noise) / 2 }
  const scaled = weights.map(weight => scale * weight)
  return { weights: constant ? Float64Array.of(0, ...scaled) : scaled, loss }
}

function sigmoid(x: number): number {
  return 1 / (1 + Math.exp(-x))
}

/** log(1 + e^x) without overflow. */
function softplus(x: number): number {
  return Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)))
}

/** The factor c and the expected loss at c w*, by the trapezoidal rule over ±10 standard deviations. */
function logisticOptimum(flip: number): { scale: number; loss: number } {
  const points = 4001
  const margins = Float64Array.from({ length: points }, (_, i) => TRUE_NORM * (20 * (i / (points - 1)) - 10))
  const densities = margins.map(margin => Math.exp(-0.5 * (margin / TRUE_NORM) ** 2))
  const total = densities.reduce((sum, density) => sum + density, 0)
  const expectation = (of: (margin: number, positive: number) => number) =>
    margins.reduce((sum, margin, i) => {
      const clean = sigmoid(margin)
      return sum + (densities[i] / total) * of(margin, clean + flip * (1 - 2 * clean))
    }, 0)
  let scale = flip === 0 ? 1 : 0
  for (let iteration = 0; iteration < 50; iteration++) {
    const slope = expectation((margin, positive) => (sigmoid(scale * margin) - positive) * margin)
    const curvature = expectation(margin => sigmoid(scale * margin) * sigmoid(-scale * margin) * margin * margin)
    scale -= slope / curvature
  }
  const loss = expectation((margin, positive) => softplus(scale * margin) - positive * scale * margin)
  return { scale, loss }
}

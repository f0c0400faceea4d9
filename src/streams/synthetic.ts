/**
 * The built-in stream `synthetic`: inputs with standard normal features x and labels from a linear model w*, so that the
 * optimum is known and regret can be told exactly. Endless: limit it by `maxRows`.
 *
 * `class`: P(y = 1 | x) = σ(w*·x), then flipped with probability `noise`. `number`: y = w*·x + noise · N(0, 1).
 */
import { Random } from './random.js'
import type { Reader } from './reader.js'
import { RowBuffer, type Rows } from './rows.js'

const BATCH_ROWS = 256
/** Length of w*: a logistic loss of about 0.4 nats at the optimum, so neither separable nor hopeless. */
const TRUE_LENGTH = 3

export interface SyntheticOptions {
  /** `class` (default): logistic. `number`: least squares. */
  readonly target?: 'class' | 'number'
  /** Number of features without the constant one. Default 20. */
  readonly dimension?: number
  /** Probability in [0, 0.5) that a class is flipped (default 0), or standard deviation ≥ 0 of a number's noise (default 0.1). */
  readonly noise?: number
  /** Tells w* and all that is drawn. Default 0. */
  readonly seed?: number
  /** Adds feature 0, always 1, whose optimal weight is 0. Default false. */
  readonly constant?: boolean
}

export interface SyntheticOptimum {
  /** Minimiser of the expected loss over all linear predictors, one weight a feature, the constant one included. */
  readonly weights: Float64Array
  /** Expected loss of the minimiser: logistic in nats, or half the squared error. */
  readonly loss: number
}

/** The generator of rows for valid options. */
export function openSynthetic(options: SyntheticOptions): Reader {
  const { target = 'class', dimension = 20, seed = 0, constant = false } = options
  return {
    dimension: dimension + (constant ? 1 : 0),
    classes: target === 'class' ? 2 : undefined,
    skipped: 0,
    repeatable: false,
    pass: () => generate(trueWeights(dimension, seed), noiseOf(options), target, new Random(seed), constant)
  }
}

/**
 * The best linear predictor of the stream with these options, and its expected loss.
 *
 * For flipped labels the minimiser is c w* by symmetry, and c solves a one-dimensional convex problem in the margin
 * m = w*·x ~ N(0, |w*|²), which is done here by quadrature and Newton's method; without flips c = 1.
 */
export function syntheticOptimum(options: SyntheticOptions = {}): SyntheticOptimum {
  const { target = 'class', dimension = 20, seed = 0, constant = false } = options
  const noise = noiseOf(options)
  const weights = trueWeights(dimension, seed)
  const { scale, loss } = target === 'class' ? logisticOptimum(noise) : { scale: 1, loss: (noise * noise) / 2 }
  const scaled = weights.map(weight => scale * weight)
  return { weights: constant ? Float64Array.of(0, ...scaled) : scaled, loss }
}

function noiseOf({ target, noise }: SyntheticOptions): number {
  return noise ?? (target === 'number' ? 0.1 : 0)
}

/** A uniform direction, of length `TRUE_LENGTH`. */
function trueWeights(dimension: number, seed: number): Float64Array {
  // Another seed than that of the inputs, lest w* be the first of them.
  const random = new Random(-1 - seed)
  const weights = Float64Array.from({ length: dimension }, () => random.normal())
  const length = Math.sqrt(weights.reduce((sum, weight) => sum + weight * weight, 0))
  return weights.map(weight => (TRUE_LENGTH * weight) / length)
}

async function* generate(
  weights: Float64Array,
  noise: number,
  target: 'class' | 'number',
  random: Random,
  constant: boolean
): AsyncGenerator<Rows> {
  const out = new RowBuffer()
  const shift = constant ? 1 : 0
  for (;;) {
    out.clear()
    out.reserve(BATCH_ROWS, BATCH_ROWS * (weights.length + 1))
    const { indices, values, labels, offsets } = out
    let entry = 0
    for (let row = 0; row < BATCH_ROWS; row++) {
      if (constant) {
        indices[entry] = 0
        values[entry++] = 1
      }
      let margin = 0
      for (let feature = 0; feature < weights.length; feature++) {
        const value = Math.fround(random.normal())
        margin += weights[feature] * value
        indices[entry] = feature + shift
        values[entry++] = value
      }
      labels[row] = target === 'class' ? drawClass(margin, noise, random) : margin + noise * random.normal()
      offsets[row + 1] = entry
    }
    out.size = BATCH_ROWS
    out.entries = entry
    yield out.view()
  }
}

function drawClass(margin: number, flip: number, random: Random): number {
  const isOne = random.uniform() < sigmoid(margin)
  const isFlipped = random.uniform() < flip
  return isOne !== isFlipped ? 1 : 0
}

function sigmoid(x: number): number {
  return 1 / (1 + Math.exp(-x))
}

/** log(1 + e^x) without overflow. */
function softplus(x: number): number {
  return Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)))
}

/** The factor c and the expected loss at c w*, by the trapezoidal rule over ten standard deviations. */
function logisticOptimum(flip: number): { scale: number; loss: number } {
  const points = 4001
  const margins = Float64Array.from({ length: points }, (_, i) => TRUE_LENGTH * (20 * (i / (points - 1)) - 10))
  const densities = margins.map(margin => Math.exp(-0.5 * (margin / TRUE_LENGTH) ** 2))
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

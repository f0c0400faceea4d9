/**
 * The built-in stream `synthetic`: inputs with standard normal features x and labels from a linear model w*, so that the
 * optimum is known and regret is exact. It does not end: limit it with `maxRows`.
 *
 * `class`: P(y = 1 | x) = σ(w*·x), then flipped with probability `noise`. `number`: y = w*·x + noise · N(0, 1).
 */
import { StreamOptionsError } from './errors.js'
import type { BuiltInDefinition, InputOptions, Reader } from './format.js'
import { checkInteger } from './options.js'
import { Random } from './random.js'
import { RowBuffer, type Rows } from './rows.js'

const BATCH_ROWS = 256
/** Norm of w*, with which the logistic loss at the optimum is about 0.4 nats: neither separable nor mostly noise. */
const TRUE_NORM = 3

export interface SyntheticOptions {
  /** `class`: logistic. `number`: least squares. @default 'class' */
  readonly target?: 'class' | 'number'
  /** Number of features without the constant one. @default 20 */
  readonly dimension?: number
  /**
   * Probability in [0, 0.5) that a class is flipped (default 0), or standard deviation ≥ 0 of a number's noise (default 0.1).
   * @default 0
   */
  readonly noise?: number
  /** Determines w* and all samples. @default 0 */
  readonly seed?: number
  /** Adds feature 0, which is always 1 and whose optimal weight is 0. @default false */
  readonly constant?: boolean
}

export interface SyntheticOptimum {
  /** Minimiser of the expected loss over all linear predictors, one weight per feature, including the constant one. */
  readonly weights: Float64Array
  /** Expected loss of the minimiser: logistic loss in nats, or half the squared error. */
  readonly loss: number
}

export const synthetic: BuiltInDefinition = {
  summary: 'endless inputs from a known linear model',
  options: ['dimension', 'noise'],
  open(options) {
    checkOptions(options)
    return openSynthetic(options)
  }
}

function checkOptions({ target, noise, dimension }: InputOptions): void {
  checkInteger('dimension', dimension, 1, 1_000_000)
  if (target !== 'number' && noise !== undefined && noise >= 0.5) {
    throw new StreamOptionsError(`noise is ${noise}: give the probability of a flipped class, below 0.5`)
  }
}

function openSynthetic(options: SyntheticOptions): Reader {
  const { target = 'class', dimension = 20, seed = 0, constant = false } = options
  return {
    dimension: dimension + (constant ? 1 : 0),
    classes: target === 'class' ? 2 : undefined,
    skipped: 0,
    repeatable: false,
    replayable: true,
    pass: () => generate(trueWeights(dimension, seed), noiseOf(options), target, new Random(seed), constant)
  }
}

/**
 * The best linear predictor of the stream with these options, and its expected loss.
 *
 * For flipped labels, the minimiser is c w* by symmetry. The factor c solves a one-dimensional convex problem in the margin
 * m = w*·x ~ N(0, |w*|²), by quadrature and Newton's method. Without flips, c = 1.
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

/** A uniformly random direction with norm `TRUE_NORM`. */
function trueWeights(dimension: number, seed: number): Float64Array {
  // The seed differs from that of the inputs; otherwise w* would equal the first input.
  const random = new Random(-1 - seed)
  const weights = Float64Array.from({ length: dimension }, () => random.normal())
  const length = Math.sqrt(weights.reduce((sum, weight) => sum + weight * weight, 0))
  return weights.map(weight => (TRUE_NORM * weight) / length)
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

/**
 * The best fixed predictor in hindsight of a recorded stream, which is the comparator of the regret if no optimum is known. It is
 * found by truncated Newton steps (Nash, "A survey of truncated-Newton methods", 2000): preconditioned conjugate gradients for
 * the direction, then a line search that needs no pass over the stream.
 */

import type { ModelName } from '../models/model.js'
import type { Examples } from '../types.js'
import { HindsightProblem } from './hindsight-problem.js'

interface HindsightOptions {
  /** Number of classes, required for softmax. */
  readonly classes?: number
  /** Number of features, including the constant one. @default the number in the inputs */
  readonly dimension?: number
  /** Norm of the average loss's gradient at which the search ends. @default 1e-8 */
  readonly tolerance?: number
  /** Maximum number of passes over the inputs. @default 5000 */
  readonly maxPasses?: number
  /** Called after every Newton step. */
  readonly onStep?: (reached: { readonly gradientNorm: number; readonly passes: number }) => void
}

export interface HindsightOptimum {
  /** Float64 weights in the order of the learner's one block: feature·C + class. */
  readonly weights: Float64Array
  /** Mean loss per input at these weights, in nats (or squared-error units), without penalty. */
  readonly averageLoss: number
  /** Euclidean norm of its gradient. */
  readonly gradientNorm: number
  /** Euclidean norm of the weights. */
  readonly weightNorm: number
  /**
   * `minimum`: the gradient is within the tolerance. `separable`: some predictor makes no error, so that the log loss decreases
   * towards 0 as the weights grow, and has no minimiser; these are such weights, so large that the gradient is within the
   * tolerance. `stopped`: neither, after `maxPasses` or when float64 permits no further decrease.
   */
  readonly outcome: 'minimum' | 'separable' | 'stopped'
  /** Number of inputs. */
  readonly inputs: number
  /** Number of passes over the inputs. */
  readonly passes: number
}

const DEFAULT_PASSES = 5000
const MAX_STEPS = 500
/** Damping of the Hessian as a share of the gradient's norm, which bounds steps in directions without curvature. */
const DAMPING = 1e-3
/** δ of the approximate Wolfe conditions. */
const SUFFICIENT_DECREASE = 0.1
/** Relative difference of losses below which it is rounding error. */
const ROUNDING = 1e-12

/**
 * Minimises the average loss over the weights.
 * @param examples labelled rows. A constant feature is a feature like any other
 * @throws OptionError, ExampleError for inputs that do not fit the model, or no inputs
 */
export function hindsightOptimum(
  model: ModelName,
  examples: Examples,
  { classes, dimension, tolerance = 1e-8, maxPasses = DEFAULT_PASSES, onStep }: HindsightOptions = {}
): HindsightOptimum {
  const problem = new HindsightProblem(model, examples, classes, dimension)
  const weights = new Float64Array(problem.parameters)
  const gradient = new Float64Array(problem.parameters)
  const scores = new Float64Array(problem.scores)
  const slopes = new Float64Array(problem.scores)
  let averageLoss = problem.loss(scores, slopes)
  problem.pullBack(slopes, gradient)
  let gradientNorm = norm(gradient)
  let isSeparable = false
  for (let step = 0; step < MAX_STEPS && gradientNorm > tolerance && problem.passes < maxPasses; step++) {
    isSeparable ||= problem.separates(scores)
    if (isSeparable) {
      // There is no minimum. Grow the weights until the gradient is within the tolerance.
      for (let i = 0; i < weights.length; i++) weights[i] *= 2
    } else {
      const accuracy = Math.max(Math.min(0.1, Math.sqrt(gradientNorm)) * gradientNorm, tolerance / 4)
      const { direction, scoreDirection } = newtonDirection(problem, scores, gradient, accuracy, maxPasses)
      const length = searchAlong(problem, scores, averageLoss, scoreDirection)
      if (length === 0) break
      for (let i = 0; i < weights.length; i++) weights[i] += length * direction[i]
    }
    // Computed again, so that rounding errors do not accumulate.
    problem.scoresOf(weights, scores)
    averageLoss = problem.loss(scores, slopes)
    problem.pullBack(slopes, gradient)
    gradientNorm = norm(gradient)
    onStep?.({ gradientNorm, passes: problem.passes })
  }
  isSeparable ||= problem.separates(scores)
  const reached = gradientNorm <= tolerance ? 'minimum' : 'stopped'
  return {
    weights,
    averageLoss,
    gradientNorm,
    weightNorm: norm(weights),
    outcome: isSeparable ? 'separable' : reached,
    inputs: examples.size,
    passes: problem.passes
  }
}

/**
 * Solves (H + damping)·direction = −gradient until the norm of the residual is at most `accuracy`.
 * @returns the direction of the weights, and of the scores
 */
function newtonDirection(
  problem: HindsightProblem,
  scores: Float64Array,
  gradient: Float64Array,
  accuracy: number,
  maxPasses: number
): { readonly direction: Float64Array; readonly scoreDirection: Float64Array } {
  const { parameters } = problem
  const curvatures = new Float64Array(problem.scores)
  const preconditioner = new Float64Array(parameters)
  const damping = DAMPING * norm(gradient)
  problem.curvatures(scores, curvatures)
  problem.diagonal(curvatures, preconditioner)
  for (let i = 0; i < parameters; i++) preconditioner[i] = 1 / (preconditioner[i] + damping)

  const direction = new Float64Array(parameters)
  const scoreDirection = new Float64Array(problem.scores)
  const residual = gradient.map(g => -g)
  const search = residual.map((r, i) => r * preconditioner[i])
  const searchScores = new Float64Array(problem.scores)
  const hessianProduct = new Float64Array(problem.scores)
  const product = new Float64Array(parameters)
  let fit = dot(residual, search)
  while (norm(residual) > accuracy && problem.passes < maxPasses) {
    problem.scoresOf(search, searchScores)
    problem.multiplyByHessian(curvatures, searchScores, hessianProduct)
    problem.pullBack(hessianProduct, product)
    add(product, damping, search)
    const curvature = dot(search, product)
    // The rest is rounding error.
    if (!(curvature > 0)) break
    const length = fit / curvature
    add(direction, length, search)
    add(scoreDirection, length, searchScores)
    add(residual, -length, product)
    let next = 0
    for (let i = 0; i < parameters; i++) next += residual[i] * residual[i] * preconditioner[i]
    const share = next / fit
    for (let i = 0; i < parameters; i++) search[i] = residual[i] * preconditioner[i] + share * search[i]
    fit = next
  }
  return { direction, scoreDirection }
}

/**
 * The step length along a direction: halved until the loss decreases sufficiently, doubled while it still decreases steeply
 * (Hager and Zhang's approximate Wolfe conditions, which remain valid at the precision of rounding). 0 if there is no decrease.
 */
function searchAlong(problem: HindsightProblem, scores: Float64Array, loss: number, direction: Float64Array): number {
  const moved = new Float64Array(scores.length)
  const slopes = new Float64Array(scores.length)
  const at = (length: number): { readonly loss: number; readonly slope: number } => {
    for (let i = 0; i < moved.length; i++) moved[i] = scores[i] + length * direction[i]
    const reached = problem.loss(moved, slopes)
    return { loss: reached, slope: dot(slopes, direction) }
  }
  const { slope } = at(0)
  if (!(slope < 0)) return 0
  const rows = problem.rows
  const isEnough = (length: number, reached: { readonly loss: number; readonly slope: number }) =>
    reached.loss <= loss + (SUFFICIENT_DECREASE * length * slope) / rows ||
    (reached.loss <= loss + ROUNDING * Math.abs(loss) && reached.slope <= (2 * SUFFICIENT_DECREASE - 1) * slope)
  let length = 1
  let reached = at(length)
  while (!isEnough(length, reached)) {
    length /= 2
    if (length < 1e-12) return 0
    reached = at(length)
  }
  while (reached.slope < 0.5 * slope && length < 2 ** 20) {
    const further = at(2 * length)
    if (!isEnough(2 * length, further)) break
    length *= 2
    reached = further
  }
  return length
}

function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i]
  return sum
}

function norm(a: Float64Array): number {
  return Math.sqrt(dot(a, a))
}

/** a += factor·b */
function add(a: Float64Array, factor: number, b: Float64Array): void {
  for (let i = 0; i < a.length; i++) a[i] += factor * b[i]
}

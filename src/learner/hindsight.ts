/**
 * The best fixed predictor in hindsight of a recorded stream: what regret is told against where no optimum is known. Found
 * by truncated Newton steps (Nash, "A survey of truncated-Newton methods", 2000): preconditioned conjugate gradients for the
 * direction, then a search along it that costs no pass over the stream.
 */
import { HindsightProblem } from './hindsight-problem.js'
import type { ModelName } from './model.js'
import type { Examples } from './types.js'

export interface HindsightOptions {
  /** Number of classes: needed for softmax. */
  readonly classes?: number
  /** Number of features, the constant feature included. Default: as many as the inputs have. */
  readonly dimension?: number
  /** Length of the average loss's gradient at which the search ends. Default 1e-8. */
  readonly tolerance?: number
  /** Passes over the inputs after which it ends in any case. Default 5000. */
  readonly maxPasses?: number
  /** Called after every Newton step. */
  readonly onStep?: (reached: { readonly gradientNorm: number; readonly passes: number }) => void
}

export interface HindsightOptimum {
  /** Float64 weights in the order of the learner's one block: feature·C + class. */
  readonly weights: Float64Array
  /** Mean loss an input at these weights, in nats (or squared-error units), without any penalty. */
  readonly averageLoss: number
  /** Euclidean length of its gradient. */
  readonly gradientNorm: number
  /** Euclidean length of the weights. */
  readonly weightNorm: number
  /**
   * `minimum`: the gradient is as short as was asked for. `separable`: some predictor errs nowhere, so that the log loss
   * falls towards 0 as its weights grow, and has no minimiser; these are such weights, so large that the gradient is as
   * short as was asked for. `stopped`: neither, after `maxPasses` or where float64 could tell no further descent.
   */
  readonly outcome: 'minimum' | 'separable' | 'stopped'
  /** Inputs. */
  readonly inputs: number
  /** Passes over the inputs that it took. */
  readonly passes: number
}

const DEFAULT_PASSES = 5000
const MAX_STEPS = 500
/** Share of the gradient's length that is added to the curvature in every direction: bounds a step where there is none. */
const DAMPING = 1e-3
/** δ of the approximate Wolfe conditions. */
const DECREASE = 0.1
/** Differences of a loss below that share of it are rounding. */
const ROUNDING = 1e-12

/**
 * Minimises the average loss over the weights.
 * @param examples in memory, every row labelled; the constant feature, where there is one, is a feature like any other
 * @throws OptionError, ExampleError for inputs that do not fit the model, or no input at all
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
      // Nothing is to be found any more, only to be shown.
      for (let i = 0; i < weights.length; i++) weights[i] *= 2
    } else {
      const accuracy = Math.max(Math.min(0.1, Math.sqrt(gradientNorm)) * gradientNorm, tolerance / 4)
      const { direction, ofScores } = newtonDirection(problem, scores, gradient, accuracy, maxPasses)
      const length = searchAlong(problem, scores, averageLoss, ofScores)
      if (length === 0) break
      for (let i = 0; i < weights.length; i++) weights[i] += length * direction[i]
    }
    // Anew, lest rounding add up.
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
 * Solves (H + damping)·direction = −gradient until the residual is as short as `accuracy`.
 * @returns the direction, and what it does to the scores
 */
function newtonDirection(
  problem: HindsightProblem,
  scores: Float64Array,
  gradient: Float64Array,
  accuracy: number,
  maxPasses: number
): { readonly direction: Float64Array; readonly ofScores: Float64Array } {
  const { parameters } = problem
  const curvatures = new Float64Array(problem.scores)
  const preconditioner = new Float64Array(parameters)
  const damping = DAMPING * norm(gradient)
  problem.curvatures(scores, curvatures)
  problem.diagonal(curvatures, preconditioner)
  for (let i = 0; i < parameters; i++) preconditioner[i] = 1 / (preconditioner[i] + damping)

  const direction = new Float64Array(parameters)
  const ofScores = new Float64Array(problem.scores)
  const residual = gradient.map(g => -g)
  const search = residual.map((r, i) => r * preconditioner[i])
  const searchScores = new Float64Array(problem.scores)
  const bent = new Float64Array(problem.scores)
  const product = new Float64Array(parameters)
  let fit = dot(residual, search)
  while (norm(residual) > accuracy && problem.passes < maxPasses) {
    problem.scoresOf(search, searchScores)
    problem.multiplyByHessian(curvatures, searchScores, bent)
    problem.pullBack(bent, product)
    add(product, damping, search)
    const curvature = dot(search, product)
    // Rounding has eaten what is left.
    if (!(curvature > 0)) break
    const length = fit / curvature
    add(direction, length, search)
    add(ofScores, length, searchScores)
    add(residual, -length, product)
    let next = 0
    for (let i = 0; i < parameters; i++) next += residual[i] * residual[i] * preconditioner[i]
    const share = next / fit
    for (let i = 0; i < parameters; i++) search[i] = residual[i] * preconditioner[i] + share * search[i]
    fit = next
  }
  return { direction, ofScores }
}

/**
 * How far to go: twice as far while it still falls steeply there, half as far while it does not fall enough (Hager and
 * Zhang's approximate Wolfe conditions, which also hold where the loss itself is all rounding). 0: nowhere.
 */
function searchAlong(problem: HindsightProblem, scores: Float64Array, loss: number, direction: Float64Array): number {
  const there = new Float64Array(scores.length)
  const slopes = new Float64Array(scores.length)
  const at = (length: number): { readonly loss: number; readonly slope: number } => {
    for (let i = 0; i < there.length; i++) there[i] = scores[i] + length * direction[i]
    const reached = problem.loss(there, slopes)
    return { loss: reached, slope: dot(slopes, direction) }
  }
  const { slope } = at(0)
  if (!(slope < 0)) return 0
  const rows = problem.rows
  const isEnough = (length: number, reached: { readonly loss: number; readonly slope: number }) =>
    reached.loss <= loss + (DECREASE * length * slope) / rows ||
    (reached.loss <= loss + ROUNDING * Math.abs(loss) && reached.slope <= (2 * DECREASE - 1) * slope)
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

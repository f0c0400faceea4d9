/**
 * The average loss of a recorded stream as a function of the weights, in float64, divided as Newton's method needs it: products
 * with the input matrix X (one pass over the stream each), and functions of the rows' scores alone.
 */
import { portableExp } from '../../numeric/exp.js'
import { largest, logSumExp, type ScalarLoss } from '../models/losses.js'
import {
  checkDimension,
  checkLabel,
  classesOf,
  featureOutOfRange,
  type ModelName,
  outputsOf,
  scalarLossOf
} from '../models/model.js'
import { OptionError } from '../options.js'
import type { Examples } from '../types.js'

/** For n rows with C scores each; `scores` and `slopes` have n·C elements, `weights` dimension·C (index feature·C + class). */
export class HindsightProblem {
  /** n. */
  readonly rows: number
  /** dimension·C. */
  readonly parameters: number
  /** n·C. */
  readonly scores: number
  /** Products with X so far. */
  passes = 0
  readonly #examples: Examples
  readonly #outputs: number
  /** Undefined for softmax. */
  readonly #loss: ScalarLoss | undefined

  /**
   * @param dimension default: one more than the highest feature of the inputs
   * @throws OptionError if there are no inputs, or model and classes do not go together; ExampleError for a label or feature
   * that does not fit
   */
  constructor(model: ModelName, examples: Examples, classes: number | undefined, dimension = featuresOf(examples)) {
    this.#outputs = outputsOf(model, classes)
    this.#loss = scalarLossOf(model)
    this.#examples = examples
    checkDimension(dimension)
    if (examples.size === 0) throw new OptionError('there are no inputs')
    const { indices, offsets, labels, size } = examples
    for (let row = 0; row < size; row++) {
      checkLabel(labels[row], classesOf(model, this.#outputs), row)
      for (let p = offsets[row]; p < offsets[row + 1]; p++) {
        if (indices[p] >>> 0 >= dimension) throw featureOutOfRange(indices[p], dimension, row)
      }
    }
    this.rows = size
    this.parameters = dimension * this.#outputs
    this.scores = size * this.#outputs
  }

  /** X·weights, the scores of all rows. One pass. */
  scoresOf(weights: Float64Array, into: Float64Array): void {
    const { size, indices, offsets, values } = this.#examples
    const outputs = this.#outputs
    this.passes++
    if (outputs === 1) {
      for (let row = 0; row < size; row++) {
        let score = 0
        for (let p = offsets[row]; p < offsets[row + 1]; p++) score += weights[indices[p]] * values[p]
        into[row] = score
      }
      return
    }
    into.fill(0)
    for (let row = 0; row < size; row++) {
      const first = row * outputs
      for (let p = offsets[row]; p < offsets[row + 1]; p++) {
        const from = indices[p] * outputs
        const value = values[p]
        for (let c = 0; c < outputs; c++) into[first + c] += weights[from + c] * value
      }
    }
  }

  /** (1/n)·Xᵀ·slopes: the derivatives by the weights, from those by the scores. One pass. */
  pullBack(slopes: Float64Array, into: Float64Array): void {
    this.#pull(slopes, false, into)
  }

  /** The diagonal of (1/n)·Xᵀ·C·X, where C has the rows' curvatures. One pass. */
  diagonal(curvatures: Float64Array, into: Float64Array): void {
    const diagonals = this.#loss === undefined ? curvatures.map(p => p * (1 - p)) : curvatures
    this.#pull(diagonals, true, into)
  }

  /** The average loss at these scores. `slopes` receives its derivatives by the scores, times n. */
  loss(scores: Float64Array, slopes: Float64Array): number {
    const { size, labels } = this.#examples
    const outputs = this.#outputs
    let sum = 0
    if (this.#loss !== undefined) {
      for (let row = 0; row < size; row++) {
        sum += this.#loss.value(scores[row], labels[row])
        slopes[row] = this.#loss.slope(scores[row], labels[row])
      }
      return sum / size
    }
    for (let row = 0; row < size; row++) {
      const first = row * outputs
      const rowScores = scores.subarray(first, first + outputs)
      const norm = logSumExp(rowScores)
      sum += norm - rowScores[labels[row]]
      for (let c = 0; c < outputs; c++) slopes[first + c] = portableExp(rowScores[c] - norm)
      slopes[first + labels[row]] -= 1
    }
    return sum / size
  }

  /** What `multiplyByHessian` needs at these scores: second derivatives, or probabilities for softmax. */
  curvatures(scores: Float64Array, into: Float64Array): void {
    const { size, labels } = this.#examples
    const outputs = this.#outputs
    if (this.#loss !== undefined) {
      for (let row = 0; row < size; row++) into[row] = this.#loss.curvature(scores[row], labels[row])
      return
    }
    for (let first = 0; first < this.scores; first += outputs) {
      const rowScores = scores.subarray(first, first + outputs)
      const norm = logSumExp(rowScores)
      for (let c = 0; c < outputs; c++) into[first + c] = portableExp(rowScores[c] - norm)
    }
  }

  /** The Hessian of the loss by the scores, times a direction of scores. */
  multiplyByHessian(curvatures: Float64Array, direction: Float64Array, into: Float64Array): void {
    const outputs = this.#outputs
    if (this.#loss !== undefined) {
      for (let i = 0; i < direction.length; i++) into[i] = curvatures[i] * direction[i]
      return
    }
    for (let first = 0; first < this.scores; first += outputs) {
      let mean = 0
      for (let c = 0; c < outputs; c++) mean += curvatures[first + c] * direction[first + c]
      for (let c = 0; c < outputs; c++) into[first + c] = curvatures[first + c] * (direction[first + c] - mean)
    }
  }

  /** Whether these scores classify every row correctly and larger weights only decrease the loss, so that it has no minimum. */
  separates(scores: Float64Array): boolean {
    const { size, labels } = this.#examples
    const outputs = this.#outputs
    if (this.#loss?.isUnattainedIfSeparable === false) return false
    for (let row = 0; row < size; row++) {
      if (outputs === 1) {
        if (!(labels[row] > 0 ? scores[row] > 0 : scores[row] < 0)) return false
        continue
      }
      const others = scores.slice(row * outputs, (row + 1) * outputs)
      const correct = others[labels[row]]
      others[labels[row]] = Number.NEGATIVE_INFINITY
      if (!(correct > others[largest(others)])) return false
    }
    return true
  }

  #pull(slopes: Float64Array, squared: boolean, into: Float64Array): void {
    const { size, indices, offsets, values } = this.#examples
    const outputs = this.#outputs
    this.passes++
    into.fill(0)
    for (let row = 0; row < size; row++) {
      const first = row * outputs
      for (let p = offsets[row]; p < offsets[row + 1]; p++) {
        const from = indices[p] * outputs
        const value = squared ? values[p] * values[p] : values[p]
        for (let c = 0; c < outputs; c++) into[from + c] += slopes[first + c] * value
      }
    }
    for (let i = 0; i < into.length; i++) into[i] /= size
  }
}

/** One more than the highest feature index, at least 1. */
export function featuresOf({ size, offsets, indices }: Examples): number {
  let last = 0
  for (let p = 0; p < offsets[size]; p++) if (indices[p] > last) last = indices[p]
  return last + 1
}

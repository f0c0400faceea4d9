/**
 * The average loss of a recorded stream as a function of the weights, in float64, cut up as Newton's method asks for it:
 * products with the inputs (each one pass over the stream) apart from what concerns the rows' scores alone.
 */
import { OptionError } from './errors.js'
import { portableExp } from './exp.js'
import { largest, logSumExp, lossOf, type ScalarLoss, sigmoid, slopeOf } from './losses.js'
import {
  checkDimension,
  checkLabel,
  classesOf,
  featureOutOfRange,
  type ModelName,
  outputsOf,
  scalarLossOf
} from './model.js'
import type { Examples } from './types.js'

/** With n rows and C scores a row; `scores` and `slopes` are arrays of n·C, `weights` of dimension·C (feature·C + class). */
export class HindsightProblem {
  /** n. */
  readonly rows: number
  /** dimension·C. */
  readonly parameters: number
  /** n·C. */
  readonly scores: number
  /** Products with the inputs so far. */
  passes = 0
  readonly #examples: Examples
  readonly #outputs: number
  /** Undefined for softmax. */
  readonly #loss: ScalarLoss | undefined

  /**
   * @param dimension undefined: as many features as the inputs have
   * @throws OptionError without an input, or where model and classes do not go together; ExampleError for a label or
   * feature that does not fit
   */
  constructor(model: ModelName, examples: Examples, classes: number | undefined, dimension = featuresOf(examples)) {
    this.#outputs = outputsOf(model, classes)
    this.#loss = scalarLossOf(model)
    this.#examples = examples
    checkDimension(dimension)
    if (examples.size === 0) throw new OptionError('there are no inputs, hence no best predictor of them')
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

  /** The scores of all rows. One pass. */
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

  /** (1/n)·Xᵀ·slopes: what derivatives by the scores mean for the weights. One pass. */
  pullBack(slopes: Float64Array, into: Float64Array): void {
    this.#pull(slopes, false, into)
  }

  /** The diagonal of (1/n)·Xᵀ·C·X for rows' own curvatures. One pass. */
  diagonal(curvatures: Float64Array, into: Float64Array): void {
    const own = this.#loss === undefined ? curvatures.map(p => p * (1 - p)) : curvatures
    this.#pull(own, true, into)
  }

  /** The average loss at these scores; `slopes` becomes its derivatives by them, times n. */
  loss(scores: Float64Array, slopes: Float64Array): number {
    const { size, labels } = this.#examples
    const outputs = this.#outputs
    let sum = 0
    if (this.#loss !== undefined) {
      for (let row = 0; row < size; row++) {
        sum += lossOf(this.#loss, scores[row], labels[row])
        slopes[row] = slopeOf(this.#loss, scores[row], labels[row])
      }
      return sum / size
    }
    for (let row = 0; row < size; row++) {
      const first = row * outputs
      const own = scores.subarray(first, first + outputs)
      const norm = logSumExp(own)
      sum += norm - own[labels[row]]
      for (let c = 0; c < outputs; c++) slopes[first + c] = portableExp(own[c] - norm)
      slopes[first + labels[row]] -= 1
    }
    return sum / size
  }

  /** What `bend` needs to know at these scores: second derivatives, or for softmax the probabilities. */
  curvatures(scores: Float64Array, into: Float64Array): void {
    const { size, labels } = this.#examples
    const outputs = this.#outputs
    switch (this.#loss) {
      case 'squared':
        into.fill(1)
        break
      case 'logistic':
        for (let row = 0; row < size; row++) into[row] = sigmoid(scores[row]) * sigmoid(-scores[row])
        break
      case 'hinge':
        // One of its generalised second derivatives where it has none.
        for (let row = 0; row < size; row++) {
          const t = labels[row] > 0 ? scores[row] : -scores[row]
          into[row] = t >= 0 && t <= 1 ? 1 : 0
        }
        break
      case undefined:
        for (let first = 0; first < this.scores; first += outputs) {
          const own = scores.subarray(first, first + outputs)
          const norm = logSumExp(own)
          for (let c = 0; c < outputs; c++) into[first + c] = portableExp(own[c] - norm)
        }
        break
      default:
        this.#loss satisfies never
    }
  }

  /** The loss's second derivative by the scores, times a direction of scores. */
  bend(curvatures: Float64Array, direction: Float64Array, into: Float64Array): void {
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

  /** Whether these scores put every row on the right side, so that larger ones of the same signs only lessen a log loss. */
  separates(scores: Float64Array): boolean {
    const { size, labels } = this.#examples
    const outputs = this.#outputs
    if (this.#loss === 'squared' || this.#loss === 'hinge') return false
    for (let row = 0; row < size; row++) {
      if (outputs === 1) {
        if (!(labels[row] > 0 ? scores[row] > 0 : scores[row] < 0)) return false
        continue
      }
      const own = scores.slice(row * outputs, (row + 1) * outputs)
      const right = own[labels[row]]
      own[labels[row]] = Number.NEGATIVE_INFINITY
      if (!(right > own[largest(own)])) return false
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

/** One more than the highest feature number, at least 1. */
export function featuresOf({ size, offsets, indices }: Examples): number {
  let most = 0
  for (let p = 0; p < offsets[size]; p++) if (indices[p] > most) most = indices[p]
  return most + 1
}

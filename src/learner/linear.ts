/**
 * The sparse linear family as a pure `Learner`: logistic, softmax, squared loss and smooth hinge over CSR rows. One
 * block, `weights`; a feature's weights lie side by side (index = feature·C + class) so that a row's features each touch
 * one stretch of memory.
 */
import { portableExp } from './exp.js'
import { largest, logSumExp, lossOf, probabilityOf, type ScalarLoss, slopeOf, slopesInPlace } from './losses.js'
import {
  checkDimension,
  checkGradient,
  checkLabel,
  classesOf,
  featureOutOfRange,
  type ModelName,
  type ModelOptions,
  outputsOf,
  scalarLossOf
} from './model.js'
import { l2Option, resolveOptions } from './options.js'
import type { Blocks, Examples, Layout, Learner, Prediction, Score } from './types.js'

/**
 * @returns a stateless learner with one block of dimension × (classes or 1) weights, all zero at the start
 * @throws OptionError where model, classes, dimension or l2 do not go together
 */
export function createLearner(options: ModelOptions): Learner {
  const { model, dimension, classes } = options
  const outputs = outputsOf(model, classes)
  checkDimension(dimension)
  const { l2 } = resolveOptions(`model ${model}`, l2Option, { l2: options.l2 })
  const loss = scalarLossOf(model)
  return loss === undefined
    ? new SoftmaxLearner(dimension, outputs, l2)
    : new ScalarLearner(model as Exclude<ModelName, 'softmax'>, loss, dimension, l2)
}

/** Adds the penalty's part of `count` gradients; the one dense step, so call with as many rows at once as there are. */
export function addPenalty(weights: Float32Array, l2: number, count: number, sum: Float32Array): void {
  if (l2 === 0) return
  for (let i = 0; i < weights.length; i++) sum[i] += l2 * count * weights[i]
}

/** Shared by all linear learners: shape, bounds, and the start. */
export abstract class LinearLearner {
  readonly layout: Layout

  constructor(
    protected readonly dimension: number,
    outputs: number
  ) {
    this.layout = { blocks: [{ name: 'weights', length: dimension * outputs }] }
  }

  initial(): Float32Array[] {
    return this.layout.blocks.map(block => new Float32Array(block.length))
  }

  predict([weights]: Blocks, examples: Examples, from: number, to: number): Prediction[] {
    return Array.from({ length: to - from }, (_, i) => this.predictRow(weights, examples, from + i))
  }

  protected abstract predictRow(weights: Float32Array, examples: Examples, row: number): Prediction

  /** Σx² of a row, after checking that its features exist. */
  protected squareOf({ indices, values, offsets }: Examples, row: number): number {
    let square = 0
    for (let p = offsets[row]; p < offsets[row + 1]; p++) {
      if (indices[p] >>> 0 >= this.dimension) throw featureOutOfRange(indices[p], this.dimension, row)
      square += values[p] * values[p]
    }
    return square
  }

  /** w·x of a row, after checking that its features exist. For models with one score. */
  protected scoreOf(weights: Float32Array, { indices, values, offsets }: Examples, row: number): number {
    let score = 0
    for (let p = offsets[row]; p < offsets[row + 1]; p++) {
      if (indices[p] >>> 0 >= this.dimension) throw featureOutOfRange(indices[p], this.dimension, row)
      score += weights[indices[p]] * values[p]
    }
    return score
  }
}

class ScalarLearner extends LinearLearner implements Learner {
  readonly classifies: boolean
  readonly #classes: number

  constructor(
    private readonly model: Exclude<ModelName, 'softmax'>,
    private readonly loss: ScalarLoss,
    dimension: number,
    private readonly l2: number
  ) {
    super(dimension, 1)
    this.#classes = classesOf(model, 1)
    this.classifies = this.#classes > 0
  }

  score([weights]: Blocks, examples: Examples, from: number, to: number, into: Score): void {
    for (let row = from; row < to; row++) {
      const label = examples.labels[row]
      checkLabel(label, this.#classes, row)
      const score = this.scoreOf(weights, examples, row)
      into.loss += lossOf(this.loss, score, label)
      if (this.classifies && score > 0 === label > 0) into.hits++
    }
  }

  addGradient([weights]: Blocks, examples: Examples, from: number, to: number, [sum]: Blocks): void {
    const { indices, values, offsets, labels } = examples
    for (let row = from; row < to; row++) {
      checkLabel(labels[row], this.#classes, row)
      const slope = slopeOf(this.loss, this.scoreOf(weights, examples, row), labels[row])
      checkGradient(slope * slope * this.squareOf(examples, row), row)
      for (let p = offsets[row]; p < offsets[row + 1]; p++) sum[indices[p]] += slope * values[p]
    }
    addPenalty(weights, this.l2, to - from, sum)
  }

  protected predictRow(weights: Float32Array, examples: Examples, row: number): Prediction {
    const score = this.scoreOf(weights, examples, row)
    if (this.model === 'linear') return { label: score, scores: [score] }
    const p = probabilityOf(this.model, score)
    return { label: score > 0 ? 1 : 0, scores: [1 - p, p] }
  }
}

class SoftmaxLearner extends LinearLearner implements Learner {
  readonly classifies = true
  /** Scores of the row at hand, kept so that scoring allocates nothing per row. */
  readonly #scores: Float64Array

  constructor(
    dimension: number,
    private readonly classes: number,
    private readonly l2: number
  ) {
    super(dimension, classes)
    this.#scores = new Float64Array(classes)
  }

  #scoresOf(weights: Float32Array, { indices, values, offsets }: Examples, row: number): Float64Array {
    const scores = this.#scores.fill(0)
    for (let p = offsets[row]; p < offsets[row + 1]; p++) {
      if (indices[p] >>> 0 >= this.dimension) throw featureOutOfRange(indices[p], this.dimension, row)
      const first = indices[p] * this.classes
      const value = values[p]
      for (let c = 0; c < this.classes; c++) scores[c] += weights[first + c] * value
    }
    return scores
  }

  score([weights]: Blocks, examples: Examples, from: number, to: number, into: Score): void {
    for (let row = from; row < to; row++) {
      const label = examples.labels[row]
      checkLabel(label, this.classes, row)
      const scores = this.#scoresOf(weights, examples, row)
      into.loss += logSumExp(scores) - scores[label]
      if (largest(scores) === label) into.hits++
    }
  }

  addGradient([weights]: Blocks, examples: Examples, from: number, to: number, [sum]: Blocks): void {
    const { indices, values, offsets, labels } = examples
    for (let row = from; row < to; row++) {
      checkLabel(labels[row], this.classes, row)
      const slopes = this.#scoresOf(weights, examples, row)
      const square = slopesInPlace(slopes, labels[row])
      checkGradient(square * this.squareOf(examples, row), row)
      for (let p = offsets[row]; p < offsets[row + 1]; p++) {
        const first = indices[p] * this.classes
        for (let c = 0; c < this.classes; c++) sum[first + c] += slopes[c] * values[p]
      }
    }
    addPenalty(weights, this.l2, to - from, sum)
  }

  protected predictRow(weights: Float32Array, examples: Examples, row: number): Prediction {
    const scores = this.#scoresOf(weights, examples, row)
    const norm = logSumExp(scores)
    return { label: largest(scores), scores: Array.from(scores, score => portableExp(score - norm)) }
  }
}

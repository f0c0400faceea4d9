/** A linear model under a loss that a program brought along. */

import { type CustomName, customLoss } from './custom.js'
import { ExampleError } from './errors.js'
import { addPenalty, LinearLearner } from './linear.js'
import { checkDimension, checkGradient, checkLabel } from './model.js'
import { l2Option, resolveOptions } from './options.js'
import type { Blocks, Examples, Learner, Prediction, Score } from './types.js'

export interface CustomLossOptions {
  readonly model: CustomName
  /** Number of features, the constant one included. */
  readonly dimension: number
  /** λ of the penalty λ/2·‖w‖². Default 0. */
  readonly l2?: number
}

/** @throws OptionError if no plug-in has the loss, or dimension or l2 make no sense */
export function createCustomLearner({ model, dimension, l2 }: CustomLossOptions): Learner {
  checkDimension(dimension)
  return new CustomLossLearner(model, dimension, resolveOptions(`model ${model}`, l2Option, { l2 }).l2)
}

class CustomLossLearner extends LinearLearner implements Learner {
  readonly #loss
  readonly #classes: number

  constructor(
    private readonly name: CustomName,
    dimension: number,
    private readonly l2: number
  ) {
    super(dimension, 1)
    this.#loss = customLoss(name)
    this.#classes = this.#loss.classifies ? 2 : 0
  }

  get classifies(): boolean {
    return this.#loss.classifies
  }

  score([weights]: Blocks, examples: Examples, from: number, to: number, into: Score): void {
    for (let row = from; row < to; row++) {
      const label = examples.labels[row]
      checkLabel(label, this.#classes, row)
      const score = this.scoreOf(weights, examples, row)
      into.loss += this.#finite(this.#loss.value(score, label), row)
      if (this.classifies && score > 0 === label > 0) into.hits++
    }
  }

  addGradient([weights]: Blocks, examples: Examples, from: number, to: number, [sum]: Blocks): void {
    const { indices, values, offsets, labels } = examples
    for (let row = from; row < to; row++) {
      checkLabel(labels[row], this.#classes, row)
      const slope = this.#finite(this.#loss.slope(this.scoreOf(weights, examples, row), labels[row]), row)
      checkGradient(slope * slope * this.squareOf(examples, row), row)
      for (let p = offsets[row]; p < offsets[row + 1]; p++) sum[indices[p]] += slope * values[p]
    }
    addPenalty(weights, this.l2, to - from, sum)
  }

  protected override predictRow(weights: Float32Array, examples: Examples, row: number): Prediction {
    const score = this.scoreOf(weights, examples, row)
    const isOne = score > 0
    if (!this.classifies) {
      const number = this.#loss.predict?.(score) ?? score
      return { label: number, scores: [number] }
    }
    const p = this.#loss.predict?.(score) ?? Number(isOne)
    return { label: Number(isOne), scores: [1 - p, p] }
  }

  #finite(number: number, row: number): number {
    if (Number.isFinite(number)) return number
    throw new ExampleError(row, `loss ${this.name} gave ${number}: it must be finite, and so must its slope`)
  }
}

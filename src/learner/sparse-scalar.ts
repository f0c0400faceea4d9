/** The fused loop for models with one score (logistic, linear, hinge): score, loss, gradient and AdaGrad step of a row. */
import { lossOf, type ScalarLoss, slopeOf } from './losses.js'
import { checkGradient, checkLabel } from './model.js'
import { adagradWeight } from './rules/adagrad.js'
import { SparseEngine, type SparseEngineOptions } from './sparse-engine.js'
import type { Examples } from './types.js'

export class SparseScalarEngine extends SparseEngine {
  readonly #loss: ScalarLoss
  readonly #classes: number
  readonly #slope = new Float64Array(1)

  /** @param classes 2, or 0 for regression */
  constructor(options: Omit<SparseEngineOptions, 'outputs'>, loss: ScalarLoss, classes: number) {
    super({ ...options, outputs: 1 })
    this.#loss = loss
    this.#classes = classes
  }

  protected override learnRows(examples: Examples): void {
    const { labels, offsets, indices, values, size } = examples
    const { step, growth, initial } = this.adagrad
    const loss = this.#loss
    const tally = this.tally
    const servesAverage = this.servesAverage
    let { weights, squares, lag, capacity } = this
    for (let row = 0; row < size; row++) {
      const label = labels[row]
      if (Number.isNaN(label)) {
        tally.unlabelled++
        continue
      }
      checkLabel(label, this.#classes, row)
      const from = offsets[row]
      const to = offsets[row + 1]
      let score = 0
      let lagging = 0
      let square = 0
      let last = -1
      let ascending = true
      for (let p = from; p < to; p++) {
        const i = indices[p]
        if (i >>> 0 >= capacity) {
          this.grow(examples, row)
          ;({ weights, squares, lag, capacity } = this)
        }
        if (i <= last) ascending = false
        last = i
        const x = values[p]
        score += weights[i] * x
        lagging += lag[i] * x
        square += x * x
      }
      const served = servesAverage ? score - this.retention * lagging : score
      tally.loss += lossOf(loss, served, label)
      if (served > 0 === label > 0) tally.hits++
      const slope = slopeOf(loss, score, label)
      checkGradient(slope * slope * square)
      const inverse = 1 / this.retention
      if (ascending) {
        this.saw(last)
        for (let p = from; p < to; p++) {
          const i = indices[p]
          const h = Math.fround(slope * values[p])
          squares[i] += h * h
          const before = weights[i]
          weights[i] = adagradWeight(before, h, squares[i], step, growth, initial)
          lag[i] += (weights[i] - before) * inverse
        }
      } else {
        this.#slope[0] = slope
        this.saw(this.gather(examples, row, this.#slope))
        const gradient = this.gradient
        for (let p = from; p < to; p++) {
          const i = indices[p]
          const h = gradient[i]
          gradient[i] = 0
          squares[i] += h * h
          const before = weights[i]
          weights[i] = adagradWeight(before, h, squares[i], step, growth, initial)
          lag[i] += (weights[i] - before) * inverse
        }
      }
      tally.inputs++
      this.shrinkLags()
    }
  }
}

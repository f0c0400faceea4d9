/** The fused training loop of softmax: scores, loss, gradient and AdaGrad step of one row after another. */
import { largest, logSumExp, slopesInPlace } from './losses.js'
import { commitClass } from './metrics/index.js'
import { checkGradient, checkLabel } from './model.js'
import { CELL, LAG, SparseEngine, type SparseEngineOptions } from './sparse-engine.js'
import type { Examples } from './types.js'

export class SparseSoftmaxEngine extends SparseEngine {
  readonly #scores: Float64Array
  readonly #served: Float64Array

  constructor(options: SparseEngineOptions) {
    super(options, { kind: 'classes', classes: options.outputs })
    this.#scores = new Float64Array(options.outputs)
    this.#served = new Float64Array(options.outputs)
  }

  protected override learnRows(examples: Examples): void {
    const { labels, offsets, indices, size } = examples
    const { progress, outputs } = this
    for (let row = 0; row < size; row++) {
      const label = labels[row]
      if (Number.isNaN(label)) {
        progress.unlabelled++
        continue
      }
      checkLabel(label, outputs, row)
      for (let p = offsets[row]; p < offsets[row + 1]; p++)
        if (indices[p] >>> 0 >= this.capacity) this.grow(examples, row)
      const square = this.#score(examples, row)
      const served = this.servesAverage ? this.#served : this.#scores
      const norm = logSumExp(served)
      const predicted = largest(served)
      progress.loss += norm - served[label]
      if (predicted === label) progress.hits++
      if (progress.outcomes !== undefined) commitClass(progress.outcomes, served, norm, label, predicted)
      checkGradient(slopesInPlace(this.#scores, label) * square, row)
      this.saw(this.gather(examples, row, this.#scores))
      this.stepGathered(examples, row)
      progress.inputs++
      this.shrinkLags()
    }
  }

  /** Computes the current and the served scores. @returns Σx² */
  #score({ indices, values, offsets }: Examples, row: number): number {
    const { outputs, cells, retention, servesAverage } = this
    const scores = this.#scores.fill(0)
    const served = this.#served.fill(0)
    let square = 0
    for (let p = offsets[row]; p < offsets[row + 1]; p++) {
      const x = values[p]
      const first = indices[p] * outputs * CELL
      square += x * x
      for (let c = 0; c < outputs; c++) {
        scores[c] += cells[first + c * CELL] * x
        if (servesAverage) served[c] += cells[first + c * CELL + LAG] * x
      }
    }
    if (servesAverage) for (let c = 0; c < outputs; c++) served[c] = scores[c] - retention * served[c]
    return square
  }
}

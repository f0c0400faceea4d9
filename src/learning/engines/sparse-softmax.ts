/** The fused training loop of softmax: scores, loss, gradient and AdaGrad step of one row after another. */

import { commitClass } from '../metrics/index.js'
import { type ClassTable, countAdded, withClass } from '../models/class-table.js'
import { largest, logSumExp, slopesInPlace } from '../models/losses.js'
import { checkGradient, checkLabel, gradientWeight } from '../models/model.js'
import { measures } from '../rules/adagrad.js'
import { type Blocks, type Examples, weightOf } from '../types.js'
import type { Trained } from './batch-engine.js'
import type { SoftmaxKernel } from './softmax-kernel.js'
import { CELL, LAG, SparseEngine, type SparseEngineOptions } from './sparse-engine.js'

export class SparseSoftmaxEngine extends SparseEngine {
  readonly #scores: Float64Array
  readonly #served: Float64Array
  /** Where the names of classes that are added are; undefined if there is no room for more. */
  readonly #block: ClassTable | undefined
  #table: Float32Array | undefined
  /** Number of classes with names. */
  #active: number

  readonly #kernel: SoftmaxKernel | undefined

  /** @param kernel computes scores and steps of plain rows @default none */
  constructor(options: Omit<SparseEngineOptions, 'allocate'>, kernel?: SoftmaxKernel) {
    const allocate = kernel && ((length: number) => kernel.cells(length))
    super({ ...options, allocate }, { kind: 'classes', classes: options.outputs })
    this.#kernel = kernel
    this.#scores = new Float64Array(options.outputs)
    this.#served = new Float64Array(options.outputs)
    this.#block = options.table
    this.#active = options.table?.named.length ?? options.outputs
    this.#table = options.table?.initial()
  }

  addClass(name: string): number | undefined {
    const table = this.#table && withClass(this.#table, name)
    if (table === undefined) return undefined
    this.#table = table
    return this.#active++
  }

  override resume(from: Trained): void {
    super.resume(from)
    if (this.#block === undefined) return
    this.#table = this.#block.of(from.parameters)
    this.#active = this.#block.named.length + countAdded(this.#table)
  }

  override snapshot(): Trained {
    const trained = super.snapshot()
    const table = this.#table
    if (table === undefined) return trained
    const withTable = ([weights]: Blocks) => [weights, table]
    return { ...trained, parameters: withTable(trained.parameters), average: withTable(trained.average) }
  }

  protected override learnRows(examples: Examples): void {
    const { labels, offsets, indices, size } = examples
    const { progress, outputs } = this
    const isWhole = this.#active === outputs
    const current = isWhole ? this.#scores : this.#scores.subarray(0, this.#active)
    const average = isWhole ? this.#served : this.#served.subarray(0, this.#active)
    this.#kernel?.clear()
    for (let row = 0; row < size; row++) {
      const label = labels[row]
      if (Number.isNaN(label)) {
        progress.unlabelled++
        continue
      }
      checkLabel(label, this.#active, row)
      let square = this.#kernel?.score(examples, row, this.#scores, this.#served)
      const isPlain = square !== undefined
      if (square === undefined) {
        for (let p = offsets[row]; p < offsets[row + 1]; p++)
          if (indices[p] >>> 0 >= this.capacity) this.grow(examples, row)
        square = this.#score(examples, row)
      }
      if (this.servesAverage) this.#subtractLags()
      const served = this.servesAverage ? average : current
      const norm = logSumExp(served)
      const predicted = largest(served)
      const weight = weightOf(examples, row)
      progress.loss += weight * (norm - served[label])
      if (predicted === label) progress.hits += weight
      if (weight !== 1) progress.surplus += weight - 1
      if (progress.outcomes !== undefined) commitClass(progress.outcomes, served, norm, label, predicted, weight)
      const factor = gradientWeight(examples, row, this.classWeights)
      checkGradient(slopesInPlace(current, label, factor) * square, row)
      if (this.#kernel !== undefined && isPlain) this.#step(this.#kernel, examples, row)
      else {
        this.saw(this.gather(examples, row, this.#scores))
        this.stepGathered(examples, row)
      }
      progress.inputs++
      this.shrinkLags()
    }
  }

  #step(kernel: SoftmaxKernel, examples: Examples, row: number): void {
    const keep = this.keep()
    const isMeasured = measures(1, this.updates)
    const { last, agreeing, total } = kernel.step(examples, row, this.#scores, 1 / this.retention, keep, isMeasured)
    this.saw(last)
    this.count(keep, agreeing, total)
  }

  #subtractLags(): void {
    const { retention } = this
    const [scores, served] = [this.#scores, this.#served]
    for (let c = 0; c < scores.length; c++) served[c] = scores[c] - retention * served[c]
  }

  /** Computes the current scores, and the sums of the lags times x. @returns Σx² */
  #score({ indices, values, offsets }: Examples, row: number): number {
    const { outputs, cells, servesAverage } = this
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
    return square
  }
}

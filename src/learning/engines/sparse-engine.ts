/**
 * Trains linear models with AdaGrad, one input at a time, in place, at a cost proportional to the features of the row. The results
 * equal those of `BatchEngine` except for rounding: numbers are float64 until the end, which is faster.
 *
 * The numbers of one weight are adjacent (a cell), so that a rare feature needs one access to memory.
 *
 * The average is updated lazily. With lag = w − w̄, an update by Δ gives lag ← (1 − γ)(lag + Δ) in every coordinate. The stored
 * number is lag divided by the product of all (1 − γ) so far (`retention`), which an update changes only where Δ is not zero.
 */

import type { OutcomeKind } from '../metrics/index.js'
import type { ClassTable } from '../models/class-table.js'
import { featureOutOfRange } from '../models/model.js'
import {
  type AdagradValues,
  adagradWeight,
  agreementBlock,
  countUpdate,
  forgottenShare,
  measure,
  measures,
  minWeight
} from '../rules/adagrad.js'
import type { WeightedAveraging } from '../rules/averaging.js'
import type { Examples } from '../types.js'
import {
  checkProgress,
  type Engine,
  INITIAL_CAPACITY,
  newProgress,
  type PredictWith,
  type Progress,
  type Trained
} from './batch-engine.js'

export interface SparseEngineOptions {
  /** Number of scores, and so of weights per feature: the number of classes for softmax, else 1. */
  readonly outputs: number
  /** Number of features; undefined if the model grows with the data. */
  readonly dimension: number | undefined
  /** Limit of the number of features. */
  readonly dimensionLimit: number
  readonly adagrad: AdagradValues
  readonly averaging: WeightedAveraging
  readonly predictWith: PredictWith
  /** Makes the array of the cells, or a longer one with the same numbers. @default in memory of its own */
  readonly allocate?: ((length: number) => Float64Array) | undefined
  /** As in `ModelOptions`. */
  readonly classWeights?: readonly number[]
  /** Softmax: the classes that can be added. @default none */
  readonly table?: ClassTable
}

/** Value of `retention` below which the stored lags are rescaled. */
export const SMALLEST_RETENTION = 1e-150

/** Size of a cell. */
export const CELL = 4
/**
 * Offsets within a cell, after the weight at 0: (w − w̄)/retention; Σh², with `maxForget` with the sign of the last h; the row's
 * gradient, which is zero between rows.
 */
export const LAG = 1
export const SQUARES = 2
export const GRADIENT = 3

export abstract class SparseEngine implements Engine {
  readonly progress: Progress
  updates = 0
  /** One cell per weight. */
  protected cells: Float64Array
  protected retention = 1
  /** Number of features that the cells have space for. */
  protected capacity: number
  protected readonly outputs: number
  protected readonly adagrad: AdagradValues
  protected readonly averaging: WeightedAveraging
  /** As the block of that name. */
  protected readonly agreement = new Float64Array(agreementBlock.length)
  /** Limit of what accumulators forget. 0: the agreement is not used. */
  protected readonly maxForget: number
  protected readonly servesAverage: boolean
  protected readonly classWeights: readonly number[] | undefined
  readonly #allocate: SparseEngineOptions['allocate']
  readonly #averages: boolean
  readonly #isFixed: boolean
  readonly #limit: number
  /** Number of features seen, or given. */
  #dimension: number

  constructor(options: SparseEngineOptions, kind: OutcomeKind) {
    this.progress = newProgress(kind)
    this.outputs = options.outputs
    this.adagrad = options.adagrad
    this.maxForget = options.adagrad.maxForget ?? 0
    this.classWeights = options.classWeights
    this.#averages = options.averaging.name !== 'none'
    this.servesAverage = options.predictWith === 'average' && this.#averages
    // Without an average, lags are unused. A weight of 0 avoids the cost of rescaling them.
    this.averaging = this.#averages ? options.averaging : { ...options.averaging, weight: () => 0 }
    this.#isFixed = options.dimension !== undefined
    this.#limit = options.dimension ?? options.dimensionLimit
    this.#dimension = options.dimension ?? 0
    this.capacity = options.dimension ?? Math.min(INITIAL_CAPACITY, options.dimensionLimit)
    this.#allocate = options.allocate
    this.cells = this.#cellsOf(new Float64Array(0))
  }

  #cellsOf(before: Float64Array): Float64Array {
    const length = this.capacity * this.outputs * CELL
    if (this.#allocate) return this.#allocate(length)
    const cells = new Float64Array(length)
    cells.set(before)
    return cells
  }

  learn(examples: Examples): void {
    this.learnRows(examples)
    checkProgress(this.progress)
  }

  protected abstract learnRows(examples: Examples): void

  /** Numbers were rounded to float32 when the earlier run ended. */
  resume({ parameters: [weights], average: [average], state, updates, dimension }: Trained): void {
    const { cells } = this
    const [squares, agreement] = state
    if (this.maxForget > 0) this.agreement.set(agreement)
    for (let i = 0; i < weights.length; i++) {
      cells[CELL * i] = weights[i]
      cells[CELL * i + LAG] = this.#averages ? weights[i] - average[i] : 0
      cells[CELL * i + SQUARES] = squares[i]
    }
    this.updates = updates
    this.saw(dimension - 1)
  }

  finish(): Trained {
    return this.snapshot()
  }

  snapshot(): Trained {
    const dimension = Math.max(1, this.#dimension)
    const length = dimension * this.outputs
    const { cells, retention } = this
    const weights = new Float32Array(length)
    const average = new Float32Array(length)
    const squares = new Float32Array(length)
    for (let i = 0; i < length; i++) {
      weights[i] = cells[CELL * i]
      average[i] = cells[CELL * i] - (this.#averages ? retention * cells[CELL * i + LAG] : 0)
      squares[i] = cells[CELL * i + SQUARES]
    }
    return {
      dimension,
      parameters: [weights],
      average: [average],
      state: this.maxForget > 0 ? [squares, Float32Array.from(this.agreement)] : [squares],
      updates: this.updates
    }
  }

  /** Grows the cells for a row with a feature beyond the capacity. @throws ExampleError beyond the limit */
  protected grow(examples: Examples, row: number): void {
    let last = 0
    for (let p = examples.offsets[row]; p < examples.offsets[row + 1]; p++) {
      const feature = examples.indices[p]
      if (feature >>> 0 >= this.#limit) throw featureOutOfRange(feature, this.#limit, row)
      if (feature > last) last = feature
    }
    this.capacity = Math.min(this.#limit, Math.max(last + 1, 2 * this.capacity))
    this.cells = this.#cellsOf(this.cells)
  }

  /** Records the highest feature of a row, which determines the dimension of the result. */
  protected saw(feature: number): void {
    if (!this.#isFixed && feature >= this.#dimension) this.#dimension = feature + 1
  }

  /** Adds slopes·row to the cells' gradients, for a row that may have duplicate features. @returns its highest feature */
  protected gather({ indices, values, offsets }: Examples, row: number, slopes: Float64Array): number {
    const { outputs, cells } = this
    let last = -1
    for (let p = offsets[row]; p < offsets[row + 1]; p++) {
      if (indices[p] > last) last = indices[p]
      const first = indices[p] * outputs * CELL + GRADIENT
      for (let c = 0; c < outputs; c++) cells[first + c * CELL] += slopes[c] * values[p]
    }
    return last
  }

  /** The AdaGrad step with the gathered gradients, which are then reset, so that a duplicate feature makes one step. */
  protected stepGathered({ indices, offsets }: Examples, row: number): void {
    const { outputs, cells, maxForget } = this
    const { step, growth, initial } = this.adagrad
    const inverse = 1 / this.retention
    const keep = this.keep()
    const signs = maxForget > 0 ? 2 : 0
    let agreeing = 0
    let total = 0
    for (let p = offsets[row]; p < offsets[row + 1]; p++) {
      const first = indices[p] * outputs * CELL
      for (let i = first; i < first + outputs * CELL; i += CELL) {
        const h = cells[i + GRADIENT]
        cells[i + GRADIENT] = 0
        if (h === 0) continue
        const last = cells[i + SQUARES]
        const square = keep * Math.abs(last) + h * h
        const unit = h / Math.sqrt(initial + square)
        const agreed = Math.sign(last) * unit
        agreeing += agreed
        total += Math.abs(agreed)
        const before = cells[i]
        const after = adagradWeight(before, unit, step, growth)
        cells[i] = after
        cells[i + LAG] += (after - before) * inverse
        cells[i + SQUARES] = h < 0 ? (1 - signs) * square : square
      }
    }
    this.count(keep, agreeing, total)
  }

  /** Counts an update in the agreement, and measures it if that is due. */
  protected count(keep: number, agreeing: number, total: number): void {
    if (this.maxForget === 0) return
    countUpdate(this.agreement, keep)
    if (measures(1, this.updates)) measure(this.agreement, agreeing, total)
  }

  /** Share of the accumulators that the next update keeps. */
  protected keep(): number {
    const { agreement, maxForget } = this
    const { forget = 0 } = this.adagrad
    return maxForget > 0 ? (1 - forget) * (1 - forgottenShare(agreement, maxForget)) : 1 - forget
  }

  /** Least weight of the newest predictor in the average. */
  protected least(): number {
    return this.maxForget > 0 ? minWeight(this.agreement) : 0
  }

  /** Completes an update: shrinks every lag. */
  protected shrinkLags(): void {
    this.retention *= 1 - this.averaging.weight(this.updates++, this.least())
    if (this.retention < SMALLEST_RETENTION) this.rescaleLags()
  }

  /** Multiplies `retention` into the stored lags and resets it to 1. */
  protected rescaleLags(): void {
    const { cells, retention } = this
    // Memory that was never written stays so.
    for (let i = LAG; i < cells.length; i += CELL) if (cells[i] !== 0) cells[i] *= retention
    this.retention = 1
  }
}

/**
 * Training of linear models with AdaGrad one input at a time, in place, at a cost of the row's features alone. Results
 * are those of the plain way but for rounding: here numbers are float64 until the end, which is faster.
 *
 * All that belongs to one weight lies side by side (a cell), so that a rare feature costs one access to memory.
 *
 * The average is kept lazily. With lag = w − w̄, an update by Δ gives lag ← (1 − γ)(lag + Δ) in every coordinate. Stored is
 * lag divided by the product of all (1 − γ) so far (`retention`), which an update changes only where Δ is not zero.
 */
import type { WeightedAveraging } from './averaging.js'
import { featureOutOfRange } from './model.js'
import { type AdagradValues, adagradWeight } from './rules/adagrad.js'
import { checkProgress, type Engine, FIRST_CAPACITY, newProgress, type PredictWith, type Trained } from './trainer.js'
import type { Examples } from './types.js'

export interface SparseEngineOptions {
  /** Scores (and so weights) a feature: the number of classes for softmax, else 1. */
  readonly outputs: number
  /** Features; undefined: as many as the data turns out to have. */
  readonly dimension: number | undefined
  /** Most features to grow to. */
  readonly dimensionLimit: number
  readonly adagrad: AdagradValues
  readonly averaging: WeightedAveraging
  readonly predictWith: PredictWith
}

/** Below this the scaled lags are brought back into range. */
export const SMALLEST_RETENTION = 1e-150

/** Numbers a cell has. */
export const CELL = 4
/** Offsets within a cell, the weight being first: (w − w̄)/retention; Σh²; the row's gradient, zero between rows. */
export const LAG = 1
export const SQUARES = 2
export const GRADIENT = 3

export abstract class SparseEngine implements Engine {
  readonly progress = newProgress()
  updates = 0
  /** Four numbers a weight: see `WEIGHT` and the others. */
  protected cells: Float64Array
  protected retention = 1
  /** Features there is room for. */
  protected capacity: number
  protected readonly outputs: number
  protected readonly adagrad: AdagradValues
  protected readonly averaging: WeightedAveraging
  protected readonly servesAverage: boolean
  readonly #averages: boolean
  readonly #fixed: boolean
  readonly #limit: number
  /** Features seen, or given. */
  #dimension: number

  constructor(options: SparseEngineOptions) {
    this.outputs = options.outputs
    this.adagrad = options.adagrad
    this.#averages = options.averaging.name !== 'none'
    this.servesAverage = options.predictWith === 'average' && this.#averages
    // Without an average nobody looks at lags, and those that never shrink cost nothing.
    this.averaging = this.#averages ? options.averaging : { ...options.averaging, weight: () => 0 }
    this.#fixed = options.dimension !== undefined
    this.#limit = options.dimension ?? options.dimensionLimit
    this.#dimension = options.dimension ?? 0
    this.capacity = options.dimension ?? Math.min(FIRST_CAPACITY, options.dimensionLimit)
    this.cells = new Float64Array(this.capacity * this.outputs * CELL)
  }

  learn(examples: Examples): void {
    this.learnRows(examples)
    checkProgress(this.progress)
  }

  protected abstract learnRows(examples: Examples): void

  finish(): Trained {
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
    return { dimension, parameters: [weights], average: [average], state: [squares], updates: this.updates }
  }

  /** Makes room for a row that has a feature beyond the capacity. @throws ExampleError where the model may not grow */
  protected grow(examples: Examples, row: number): void {
    let most = 0
    for (let p = examples.offsets[row]; p < examples.offsets[row + 1]; p++) {
      const feature = examples.indices[p]
      if (feature >>> 0 >= this.#limit) throw featureOutOfRange(feature, this.#limit, row)
      if (feature > most) most = feature
    }
    this.capacity = Math.min(this.#limit, Math.max(most + 1, 2 * this.capacity))
    const larger = new Float64Array(this.capacity * this.outputs * CELL)
    larger.set(this.cells)
    this.cells = larger
  }

  /** Notes the row's highest feature, so that the end knows how many there are. */
  protected saw(feature: number): void {
    if (!this.#fixed && feature >= this.#dimension) this.#dimension = feature + 1
  }

  /** Adds slopes·row into the cells' gradients, for a row that may name a feature twice; returns its highest feature. */
  protected gather({ indices, values, offsets }: Examples, row: number, slopes: Float64Array): number {
    const { outputs, cells } = this
    let most = -1
    for (let p = offsets[row]; p < offsets[row + 1]; p++) {
      if (indices[p] > most) most = indices[p]
      const first = indices[p] * outputs * CELL + GRADIENT
      for (let c = 0; c < outputs; c++) cells[first + c * CELL] += slopes[c] * values[p]
    }
    return most
  }

  /** The AdaGrad step from the gathered gradients, which are zero afterwards (so a feature named twice moves once). */
  protected stepGathered({ indices, offsets }: Examples, row: number): void {
    const { outputs, cells } = this
    const { step, growth, initial } = this.adagrad
    const inverse = 1 / this.retention
    for (let p = offsets[row]; p < offsets[row + 1]; p++) {
      const first = indices[p] * outputs * CELL
      for (let i = first; i < first + outputs * CELL; i += CELL) {
        const h = cells[i + GRADIENT]
        cells[i + GRADIENT] = 0
        const squares = cells[i + SQUARES] + h * h
        const before = cells[i]
        const after = adagradWeight(before, h, squares, step, growth, initial)
        cells[i] = after
        cells[i + LAG] += (after - before) * inverse
        cells[i + SQUARES] = squares
      }
    }
  }

  /** Ends an update: every lag shrinks. */
  protected shrinkLags(): void {
    this.retention *= 1 - this.averaging.weight(this.updates++)
    if (this.retention < SMALLEST_RETENTION) this.rescaleLags()
  }

  /** Brings the stored lags back into range. */
  protected rescaleLags(): void {
    for (let i = LAG; i < this.cells.length; i += CELL) this.cells[i] *= this.retention
    this.retention = 1
  }
}

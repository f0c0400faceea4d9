/**
 * Training of linear models with AdaGrad one input at a time, in place, at a cost of the row's features alone. Results
 * are those of the plain way: parameters and state bit for bit, the average within rounding.
 *
 * The average is kept lazily. With lag = w − w̄, an update by Δ gives lag ← (1 − γ)(lag + Δ) in every coordinate. Stored is
 * lag divided by the product of all (1 − γ) so far (`retention`), which an update changes only where Δ is not zero.
 */
import type { WeightedAveraging } from './averaging.js'
import { featureOutOfRange } from './model.js'
import type { AdagradValues } from './rules/adagrad.js'
import { checkTally, type Engine, FIRST_CAPACITY, newTally, type PredictWith, type Trained } from './trainer.js'
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
const SMALLEST_RETENTION = 1e-150

export abstract class SparseEngine implements Engine {
  readonly tally = newTally()
  updates = 0
  protected weights: Float32Array
  protected squares: Float32Array
  /** (w − w̄) / retention. */
  protected lag: Float64Array
  protected retention = 1
  /** Gradient of a row whose features are not in ascending order, all zero between rows. */
  protected gradient = new Float32Array(0)
  /** Features there is room for. */
  protected capacity: number
  protected readonly outputs: number
  protected readonly adagrad: AdagradValues
  protected readonly servesAverage: boolean
  readonly #averaging: WeightedAveraging
  readonly #fixed: boolean
  readonly #limit: number
  /** Features seen, or given. */
  #dimension: number

  constructor(options: SparseEngineOptions) {
    this.outputs = options.outputs
    this.adagrad = options.adagrad
    this.servesAverage = options.predictWith === 'average'
    this.#averaging = options.averaging
    this.#fixed = options.dimension !== undefined
    this.#limit = options.dimension ?? options.dimensionLimit
    this.#dimension = options.dimension ?? 0
    this.capacity = options.dimension ?? Math.min(FIRST_CAPACITY, options.dimensionLimit)
    const length = this.capacity * this.outputs
    this.weights = new Float32Array(length)
    this.squares = new Float32Array(length)
    this.lag = new Float64Array(length)
  }

  learn(examples: Examples): void {
    this.learnRows(examples)
    checkTally(this.tally)
  }

  protected abstract learnRows(examples: Examples): void

  finish(): Trained {
    const dimension = Math.max(1, this.#dimension)
    const length = dimension * this.outputs
    const average = this.weights.slice(0, length)
    for (let i = 0; i < length; i++) average[i] = this.weights[i] - this.retention * this.lag[i]
    return {
      dimension,
      parameters: [this.weights.slice(0, length)],
      average: [average],
      state: [this.squares.slice(0, length)],
      updates: this.updates
    }
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
    const length = this.capacity * this.outputs
    this.weights = copyInto(new Float32Array(length), this.weights)
    this.squares = copyInto(new Float32Array(length), this.squares)
    this.lag = copyInto(new Float64Array(length), this.lag)
  }

  /** Notes the row's highest feature, so that the end knows how many there are. */
  protected saw(feature: number): void {
    if (!this.#fixed && feature >= this.#dimension) this.#dimension = feature + 1
  }

  /** Adds slopes·row into `gradient`, for a row that may name a feature twice; returns its highest feature. */
  protected gather({ indices, values, offsets }: Examples, row: number, slopes: Float64Array): number {
    if (this.gradient.length < this.weights.length) this.gradient = new Float32Array(this.weights.length)
    let most = -1
    for (let p = offsets[row]; p < offsets[row + 1]; p++) {
      if (indices[p] > most) most = indices[p]
      const first = indices[p] * this.outputs
      for (let c = 0; c < this.outputs; c++) this.gradient[first + c] += slopes[c] * values[p]
    }
    return most
  }

  /** Ends an update: every lag shrinks. */
  protected shrinkLags(): void {
    this.retention *= 1 - this.#averaging.weight(this.updates++)
    if (this.retention >= SMALLEST_RETENTION) return
    for (let i = 0; i < this.lag.length; i++) this.lag[i] *= this.retention
    this.retention = 1
  }
}

function copyInto<T extends Float32Array | Float64Array>(larger: T, smaller: T): T {
  larger.set(smaller)
  return larger
}

/** The fused loop for models with one score (logistic, linear, hinge): score, loss, gradient and AdaGrad step of a row. */
import { portableExp } from './exp.js'
import { logisticSlope, lossOf, type ScalarLoss, slopeOf } from './losses.js'
import { checkGradient, checkLabel, GRADIENT_SQUARE_LIMIT } from './model.js'
import { adagradWeight } from './rules/adagrad.js'
import type * as cell from './sparse-engine.js'
import { SMALLEST_RETENTION, SparseEngine, type SparseEngineOptions } from './sparse-engine.js'
import type { Examples } from './types.js'

// The compiler knows the value of a constant of this module, not that of an imported one.
const CELL: typeof cell.CELL = 4
const LAG: typeof cell.LAG = 1
const SQUARES: typeof cell.SQUARES = 2
/** A product of factors is turned into a sum of logarithms from here on. */
const LARGE_PRODUCT = 1e250
/** Beyond this, log(1 + e^t) is t in float64 too, and e^t would soon be too large a factor. */
const SURELY_WRONG = 40
/** Rows of a call of the loop: few, so that a run soon gets from the interpreted loop to the compiled one. */
const SLICE_ROWS = 16

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
    for (let row = 0; row < examples.size; ) {
      row = this.#learnFrom(examples, row, Math.min(examples.size, row + SLICE_ROWS))
    }
  }

  /**
   * Learns rows [start, end); returns the row to go on with, which is earlier than the end where the cells had to grow
   * (so that inside the loop they are one array, known to be so to the compiler). What every row changes is in local
   * variables until then; a row that is out of the ordinary is dealt with behind the loop.
   */
  #learnFrom(examples: Examples, start: number, end: number): number {
    const { labels, offsets, indices, values } = examples
    const { step, growth, initial } = this.adagrad
    const { progress, servesAverage, averaging, cells, capacity } = this
    const most = capacity - 1
    const regression = this.#classes === 0
    const kind = this.#loss
    const logistic = kind === 'logistic'
    let { retention, updates } = this
    const before = updates
    let highest = -1
    let loss = 0
    let hits = 0
    // Π(1 + e^(−t)) over rows: one logarithm for many rows' losses.
    let product = 1
    let gradientSquare = 0
    let row = start
    for (; row < end; row++) {
      const label = labels[row]
      // Neither 0 nor 1, asked with a single branch.
      if (label * (label - 1) !== 0) {
        if (Number.isNaN(label)) {
          progress.unlabelled++
          continue
        }
        if (!regression || !Number.isFinite(label)) break
      }
      const from = offsets[row]
      const to = offsets[row + 1]
      let score = 0
      let lagging = 0
      let square = 0
      let last = -1
      // Their sign bits tell, without a branch a feature, whether one lies outside or does not ascend.
      let outside = 0
      let unordered = 0
      for (let p = from; p < to; p++) {
        const i = indices[p]
        const x = values[p]
        outside |= i | (most - i)
        unordered |= i - last - 1
        last = i
        score += cells[CELL * i] * x
        lagging += cells[CELL * i + LAG] * x
        square += x * x
      }
      if (outside < 0) break
      const served = servesAverage ? score - retention * lagging : score
      let slope: number
      if (logistic) {
        // Arithmetic in place of branches on the data, which would be mispredicted.
        const y = 2 * label - 1
        const t = y * served
        if (t > -SURELY_WRONG) product *= 1 + portableExp(-t)
        else loss -= t
        if (product > LARGE_PRODUCT) {
          loss += Math.log(product)
          product = 1
        }
        hits += 1 - Math.abs(Number(served > 0) - label)
        slope = logisticSlope(score, y)
      } else {
        loss += lossOf(kind, served, label)
        if (served > 0 === label > 0) hits++
        slope = slopeOf(kind, score, label)
      }
      gradientSquare = slope * slope * square
      if (!(gradientSquare <= GRADIENT_SQUARE_LIMIT)) break
      if (unordered < 0) {
        this.retention = retention
        this.#stepOf(examples, row, slope)
      } else {
        if (last > highest) highest = last
        const inverse = 1 / retention
        for (let p = from; p < to; p++) {
          const i = CELL * indices[p]
          const h = slope * values[p]
          const squares = cells[i + SQUARES] + h * h
          const weight = cells[i]
          const after = adagradWeight(weight, h, squares, step, growth, initial)
          cells[i] = after
          cells[i + LAG] += (after - weight) * inverse
          cells[i + SQUARES] = squares
        }
      }
      retention *= 1 - averaging.weight(updates++)
      if (retention < SMALLEST_RETENTION) {
        this.retention = retention
        this.rescaleLags()
        retention = this.retention
      }
    }
    this.saw(highest)
    this.retention = retention
    this.updates = updates
    progress.inputs += updates - before
    progress.loss += loss + Math.log(product)
    progress.hits += hits
    if (row < end) {
      checkLabel(labels[row], this.#classes, row)
      checkGradient(gradientSquare, row)
      this.grow(examples, row)
    }
    return row
  }

  #stepOf(examples: Examples, row: number, slope: number): void {
    this.#slope[0] = slope
    this.saw(this.gather(examples, row, this.#slope))
    this.stepGathered(examples, row)
  }
}

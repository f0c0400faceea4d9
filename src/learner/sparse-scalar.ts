/** The fused loop for models with one score (logistic, linear, hinge): score, loss, gradient and AdaGrad step of a row. */
import { portableExp } from './exp.js'
import { logisticSlope, lossOf, type ScalarLoss, slopeOf } from './losses.js'
import { checkGradient, checkLabel } from './model.js'
import { adagradWeight } from './rules/adagrad.js'
import { CELL, LAG, SparseEngine, type SparseEngineOptions, SQUARES } from './sparse-engine.js'
import type { Examples } from './types.js'

/** A product of factors is turned into a sum of logarithms from here on. */
const LARGE_PRODUCT = 1e250
/** Beyond this, log(1 + e^t) is t in float64 too, and e^t would soon be too large a factor. */
const SURELY_WRONG = 40

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
    for (let row = 0; row < examples.size; ) row = this.#learnFrom(examples, row)
  }

  /**
   * Learns rows from `start` on; returns the row to go on with, which is earlier than the end where the cells had to
   * grow (so that inside the loop they are one array, known to be so to the compiler).
   */
  #learnFrom(examples: Examples, start: number): number {
    const { labels, offsets, indices, values, size } = examples
    const { step, growth, initial } = this.adagrad
    const { tally, servesAverage, cells, capacity } = this
    const classes = this.#classes
    const kind = this.#loss
    const logistic = kind === 'logistic'
    let loss = 0
    let hits = 0
    // Π(1 + e^(−t)) over rows: one logarithm for many rows' losses.
    let product = 1
    let row = start
    for (; row < size; row++) {
      const label = labels[row]
      if (Number.isNaN(label)) {
        tally.unlabelled++
        continue
      }
      checkLabel(label, classes, row)
      const from = offsets[row]
      const to = offsets[row + 1]
      let score = 0
      let lagging = 0
      let square = 0
      let last = -1
      let ascending = true
      let fits = true
      for (let p = from; p < to; p++) {
        const i = indices[p]
        const x = values[p]
        fits &&= i >>> 0 < capacity
        ascending &&= i > last
        last = i
        score += cells[CELL * i] * x
        lagging += cells[CELL * i + LAG] * x
        square += x * x
      }
      if (!fits) {
        this.grow(examples, row)
        break
      }
      const served = servesAverage ? score - this.retention * lagging : score
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
      checkGradient(slope * slope * square, row)
      if (!ascending) this.#stepOf(examples, row, slope)
      else {
        this.saw(last)
        const inverse = 1 / this.retention
        for (let p = from; p < to; p++) {
          const i = CELL * indices[p]
          const h = slope * values[p]
          const squares = cells[i + SQUARES] + h * h
          const before = cells[i]
          const after = adagradWeight(before, h, squares, step, growth, initial)
          cells[i] = after
          cells[i + LAG] += (after - before) * inverse
          cells[i + SQUARES] = squares
        }
      }
      tally.inputs++
      this.shrinkLags()
    }
    tally.loss += loss + Math.log(product)
    tally.hits += hits
    return row
  }

  #stepOf(examples: Examples, row: number, slope: number): void {
    this.#slope[0] = slope
    this.saw(this.gather(examples, row, this.#slope))
    this.stepGathered(examples, row)
  }
}

/** The fused training loop of models with one score: score, loss, gradient and AdaGrad step of one row after another. */
import { portableExp } from '../../numeric/exp.js'
import type { OUTCOME_ROWS, Outcomes } from '../metrics/index.js'
import { logistic, logisticSlope, outcomesOf, type ScalarLoss } from '../models/losses.js'
import { checkGradient, checkLabel, GRADIENT_SQUARE_LIMIT, gradientWeight } from '../models/model.js'
import { adagradWeight, countUpdate, measure, measures } from '../rules/adagrad.js'
import { type Examples, weightOf } from '../types.js'
import type * as cell from './sparse-engine.js'
import { SMALLEST_RETENTION, SparseEngine, type SparseEngineOptions } from './sparse-engine.js'
import type { SparseKernel } from './sparse-kernel.js'

// V8 inlines the values of this module's constants, but not those of imported ones.
const CELL: typeof cell.CELL = 4
const LAG: typeof cell.LAG = 1
const SQUARES: typeof cell.SQUARES = 2
/** Limit of the product of factors; above it, the product's logarithm is added to the loss. */
const LARGE_PRODUCT = 1e250
/** Above this margin of error t, log(1 + e^t) equals t in float64, and the factor e^t would soon overflow. */
const LINEAR_MARGIN = 40
/** Rows per call of the loop. Few rows per call let V8 switch early from the interpreted to the optimised code. */
const SLICE_ROWS: typeof OUTCOME_ROWS = 16

/** Fewer rows are learned by the loop in TypeScript. */
const KERNEL_ROWS = 64
/** Share of rows that are not plain at which the kernel is not worth its calls; and rows until it is tried again. */
const MAX_ODD = 1 / 8
const RETRY_ROWS = 1 << 14

export class SparseScalarEngine extends SparseEngine {
  readonly #kernel: SparseKernel | undefined
  /** Rows until the kernel is tried again. */
  #pause = 0
  readonly #loss: ScalarLoss
  readonly #classes: number
  readonly #slope = new Float64Array(1)
  readonly #outcomes: Outcomes

  /**
   * @param classes 2, or 0 for regression
   * @param kernel learns plain rows @default none
   */
  constructor(
    options: Omit<SparseEngineOptions, 'outputs' | 'allocate'>,
    loss: ScalarLoss,
    classes: number,
    kernel?: SparseKernel
  ) {
    super({ ...options, outputs: 1, allocate: kernel && (length => kernel.cells(length)) }, outcomesOf(loss))
    this.#kernel = kernel
    this.#loss = loss
    this.#classes = classes
    this.#outcomes = this.progress.outcomes as Outcomes
  }

  protected override learnRows(examples: Examples): void {
    if (examples.weights !== undefined || this.classWeights !== undefined) {
      for (let row = 0; row < examples.size; row++) this.#learnWeighted(examples, row)
      return
    }
    const { size } = examples
    for (let row = 0; row < size; ) {
      if (this.#kernel && this.#pause <= 0 && size - row >= KERNEL_ROWS)
        row = this.#learnTaken(this.#kernel, examples, row)
      const start = row
      if (row < size) row = this.#learnFrom(examples, row, Math.min(size, row + SLICE_ROWS))
      this.#pause -= row - start
    }
  }

  /** Learns rows in the kernel, and those of them that are not plain in the loop below. @returns the end of the rows */
  #learnTaken(kernel: SparseKernel, examples: Examples, start: number): number {
    const { averaging, agreement, progress } = this
    const outcomes = this.#outcomes
    const end = kernel.take(examples, start, examples.size, this.updates, updates => averaging.weight(updates, 0))
    let odd = 0
    try {
      for (let row = start; row < end; ) {
        const { retention, updates } = this
        const learned = kernel.learn(row, end, { retention, updates, agreement, loss: progress.loss })
        const { count, entries } = learned
        this.saw(learned.highest)
        this.retention = learned.retention
        const isRescaled = this.retention < SMALLEST_RETENTION
        if (isRescaled) this.rescaleLags()
        this.updates += count
        progress.inputs += count
        progress.loss = learned.loss
        progress.hits += learned.hits
        for (let from = 0; from < count; from += SLICE_ROWS) {
          const rows = Math.min(SLICE_ROWS, count - from)
          for (let i = 0; i < 2 * rows; i++) outcomes.entries[i] = entries[2 * from + i]
          outcomes.commit(rows)
        }
        row = learned.row
        if (row === end || isRescaled) continue
        odd++
        row = this.#learnFrom(examples, row, row + 1)
      }
    } finally {
      progress.loss += kernel.rest()
    }
    if (odd > MAX_ODD * (end - start)) this.#pause = RETRY_ROWS
    return end
  }

  /**
   * Learns rows [start, end). Returns the row to continue with, which is before the end if the cells had to grow: within the
   * loop `cells` is one array, which helps the compiler. State that every row changes is in local variables, and a row with
   * an unusual label or feature is handled after the loop.
   */
  #learnFrom(examples: Examples, start: number, end: number): number {
    const { labels, offsets, indices, values } = examples
    const { step, growth, initial } = this.adagrad
    const isSigned = this.maxForget > 0
    const { progress, servesAverage, averaging, cells, capacity } = this
    const most = capacity - 1
    const regression = this.#classes === 0
    const scalarLoss = this.#loss
    const isLogistic = scalarLoss === logistic
    const outcomes = this.#outcomes
    const { entries } = outcomes
    let { retention, updates } = this
    const before = updates
    let highest = -1
    let loss = 0
    let hits = 0
    // Π(1 + e^(−t)) over rows: one logarithm for the losses of many rows.
    let product = 1
    let gradientSquare = 0
    let row = start
    for (; row < end; row++) {
      const label = labels[row]
      // Tests for neither 0 nor 1 with a single branch.
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
      // Their sign bits record, without a branch per feature, an index out of range or not in ascending order.
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
      if (isLogistic) {
        // Arithmetic instead of branches that depend on data, which would be mispredicted.
        const y = 2 * label - 1
        const t = y * served
        if (t > -LINEAR_MARGIN) product *= 1 + portableExp(-t)
        else loss -= t
        if (product > LARGE_PRODUCT) {
          loss += Math.log(product)
          product = 1
        }
        hits += 1 - Math.abs(Number(served > 0) - label)
        slope = logisticSlope(score, y)
      } else {
        loss += scalarLoss.value(served, label)
        if (served > 0 === label > 0) hits++
        slope = scalarLoss.slope(score, label)
      }
      gradientSquare = slope * slope * square
      if (!(gradientSquare <= GRADIENT_SQUARE_LIMIT)) break
      const entry = 2 * (updates - before)
      entries[entry] = label
      entries[entry + 1] = served
      if (unordered < 0) {
        this.retention = retention
        this.updates = updates
        this.#stepOf(examples, row, slope)
      } else {
        if (last > highest) highest = last
        const inverse = 1 / retention
        const keep = this.keep()
        const isMeasured = isSigned && measures(1, updates)
        let agreeing = 0
        let total = 0
        for (let p = from; p < to; p++) {
          const i = CELL * indices[p]
          const h = slope * values[p]
          const last = cells[i + SQUARES]
          const square = (h === 0 ? 1 : keep) * Math.abs(last) + h * h
          const unit = h / Math.sqrt(initial + square)
          if (isMeasured) {
            const agreed = Math.sign(last) * unit
            agreeing += agreed
            total += Math.abs(agreed)
          }
          const weight = cells[i]
          const after = adagradWeight(weight, unit, step, growth)
          cells[i] = after
          cells[i + LAG] += (after - weight) * inverse
          cells[i + SQUARES] = h === 0 ? last : isSigned && h < 0 ? -square : square
        }
        if (isSigned) countUpdate(this.agreement, keep)
        if (isMeasured) measure(this.agreement, agreeing, total)
      }
      retention *= 1 - averaging.weight(updates++, this.least())
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
    outcomes.commit(updates - before)
    if (row < end) {
      checkLabel(labels[row], this.#classes, row)
      checkGradient(gradientSquare, row)
      this.grow(examples, row)
    }
    return row
  }

  /** The same for a row with a weight, without the shortcuts of the loop. */
  #learnWeighted(examples: Examples, row: number): void {
    const { labels, offsets, indices, values } = examples
    const { progress } = this
    const label = labels[row]
    if (Number.isNaN(label)) {
      progress.unlabelled++
      return
    }
    checkLabel(label, this.#classes, row)
    for (let p = offsets[row]; p < offsets[row + 1]; p++) {
      if (indices[p] >>> 0 >= this.capacity) this.grow(examples, row)
    }
    const { cells } = this
    let [score, lagging, square] = [0, 0, 0]
    for (let p = offsets[row]; p < offsets[row + 1]; p++) {
      score += cells[CELL * indices[p]] * values[p]
      lagging += cells[CELL * indices[p] + LAG] * values[p]
      square += values[p] * values[p]
    }
    const served = this.servesAverage ? score - this.retention * lagging : score
    const slope = gradientWeight(examples, row, this.classWeights) * this.#loss.slope(score, label)
    checkGradient(slope * slope * square, row)
    const weight = weightOf(examples, row)
    progress.inputs++
    progress.surplus += weight - 1
    progress.loss += weight * this.#loss.value(served, label)
    if (served > 0 === label > 0) progress.hits += weight
    this.#outcomes.entries[0] = label
    this.#outcomes.entries[1] = served
    this.#outcomes.commit(1, weight)
    this.#stepOf(examples, row, slope)
    this.shrinkLags()
  }

  #stepOf(examples: Examples, row: number, slope: number): void {
    this.#slope[0] = slope
    this.saw(this.gather(examples, row, this.#slope))
    this.stepGathered(examples, row)
  }
}

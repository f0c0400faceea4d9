/**
 * Rounding of a node's own gradients to the grid of the predictor that it holds. What is lost by rounding remains in the residual and
 * is added to the next segment, so errors do not accumulate: over any number of batches a node is off by less than a step.
 *
 * A segment is rounded when it is closed. If it is carried over, the list of the next predictor contains it rounded to that
 * predictor's grid. The segment itself is unchanged, so the value that a batch contains follows from the grid of that batch, and the
 * difference joins the residual as long as the lineage contains this batch.
 */
import { type Grid, rounded, stepOf } from '../base/lattice.js'
import type { Blocks, Layout } from '../learner/types.js'
import { zeros } from './vectors.js'

/** Maximum magnitude of a list's sum: what is beyond waits in the residual. */
const MAX_OWN = 2 ** 17
/** Steps to which residuals are limited if a node had no gradients for longer than carry-over lasts. */
const MAX_STALE = 2

export class Rounding {
  readonly #residual: Float32Array[]
  #share: number | undefined

  constructor(layout: Layout) {
    this.#residual = zeros(layout)
  }

  /** Gradients that were lost by rounding and are not in any segment. */
  get residual(): Blocks {
    return this.#residual
  }

  /** Share of the squared norm of the last segment that is left in the residual, 0 to 1; undefined before the first. */
  get residualShare(): number | undefined {
    return this.#share
  }

  /**
   * Rounds the open segment, in place, and adds its integers to the list's sum.
   * @param isStale whether residuals are limited first
   */
  close(open: readonly Float32Array[], sum: readonly Float32Array[], grid: Grid, isStale: boolean): void {
    let energy = 0
    let left = 0
    for (let b = 0; b < open.length; b++) {
      const [values, total, residual, exponents] = [open[b], sum[b], this.#residual[b], grid[b]]
      for (let i = 0; i < values.length; i++) {
        if (values[i] === 0 && residual[i] === 0) continue
        const step = stepOf(exponents, i)
        const value = values[i] + leftOf(residual[i], step, isStale)
        const integer = integerOf(value, step, total[i])
        values[i] = integer * step
        const rest = value - values[i]
        residual[i] = rest
        total[i] += integer
        energy += value * value
        left += rest * rest
      }
    }
    if (energy > 0) this.#share = Math.min(1, left / energy)
  }

  /** Adds the integers of the open segment to a copy of one block of the list's sum, as `close` would. */
  preview(open: Float32Array, sum: Float32Array, grid: Grid, block: number, isStale: boolean): void {
    const [residual, exponents] = [this.#residual[block], grid[block]]
    for (let i = 0; i < open.length; i++) {
      if (open[i] === 0 && residual[i] === 0) continue
      const step = stepOf(exponents, i)
      sum[i] += integerOf(open[i] + leftOf(residual[i], step, isStale), step, sum[i])
    }
  }

  /** Adds a segment's integers on a grid to a list's sum. */
  static carry(sum: readonly Float32Array[], segment: Blocks, grid: Grid): void {
    for (let b = 0; b < sum.length; b++) {
      const [total, values, exponents] = [sum[b], segment[b], grid[b]]
      for (let i = 0; i < total.length; i++) if (values[i] !== 0) total[i] += rounded(values[i], stepOf(exponents, i))
    }
  }

  /**
   * The lineage uses a segment rounded to grid `now` instead of `before`.
   * @param original grid to which the segment was rounded when it was closed
   * @param before, now undefined if the lineage has not used it
   */
  settle(segment: Blocks, original: Grid, before: Grid | undefined, now: Grid | undefined): void {
    if (before === now) return
    for (let b = 0; b < segment.length; b++) {
      const [values, residual] = [segment[b], this.#residual[b]]
      for (let i = 0; i < values.length; i++) {
        const value = values[i]
        if (value === 0) continue
        const lost = lossOf(value, i, original[b], now?.[b]) - lossOf(value, i, original[b], before?.[b])
        if (lost !== 0) residual[i] += lost
      }
    }
  }
}

function leftOf(residual: number, step: number, isStale: boolean): number {
  return isStale ? Math.max(-MAX_STALE * step, Math.min(MAX_STALE * step, residual)) : residual
}

/** What rounding to a grid takes from a value. */
function lossOf(value: number, i: number, original: Int8Array, exponents: Int8Array | undefined): number {
  if (exponents === undefined || exponents === original) return 0
  const step = stepOf(exponents, i)
  return value - rounded(value, step) * step
}

/** The rounded value, or 0 if the list's sum would become too large. */
function integerOf(value: number, step: number, total: number): number {
  const integer = rounded(value, step)
  return Math.abs(total + integer) > MAX_OWN ? 0 : integer
}

/**
 * Rounding of a node's own gradients to the grid of the predictor that it holds. The part lost by
 * rounding remains in the residual and is added to the next segment, so errors do not accumulate:
 * over any number of batches a node is off by less than a step.
 *
 * A segment is rounded when it is closed. If it is carried over, the list of the next predictor
 * contains it rounded to that predictor's grid. The segment itself is unchanged, so the value that
 * a batch contains follows from the grid of that batch, and the difference joins the residual as
 * long as the lineage contains this batch.
 *
 * The grid of a predictor whose arrays are shared computes exponents only for the elements that are
 * rounded.
 */

import type { Blocks, Layout, SumBudget, UpdateRule } from '../../learning/types.js'
import { MAX_OWN } from '../../numeric/block-code.js'
import { closeDense, MIN_KERNEL } from '../../numeric/block-kernels.js'
import { type Grid, LARGEST_EXPONENT, rounded, stepOf } from '../../numeric/lattice.js'
import { type CompactBlock, forEachElement, type Sum, type SumBlock } from '../../numeric/sums.js'
import { Support } from '../../numeric/support.js'
import { gathered, type Predictor } from './predictor.js'
import { closeSparse } from './sparse-rounding.js'

/** Maximum residual, in steps, of a node that had no gradients for longer than S periods. */
const MAX_STALE = 2

export class Rounding {
  readonly #residual: Float32Array[]
  #share: number | undefined
  /** Elements of long blocks whose residual may exceed half a step. */
  readonly #pending: (Support | undefined)[]
  readonly #budget: SumBudget | undefined
  /** Steps so long that nothing of a sum remains; what is not of the model stays as it is. */
  readonly returned: LazyGrid

  /** @param budget of elements that are sent @default no limit */
  constructor(layout: Layout, budget?: SumBudget) {
    this.#budget = budget
    this.returned = layout.blocks.map((_, b) => Int8Array.of(budget && b < budget.place ? LARGEST_EXPONENT : 0))
    this.#residual = layout.blocks.map(({ length }) => new Float32Array(length))
    this.#pending = layout.blocks.map(({ length }) => Support.of(length))
  }

  /** Gradients that were lost by rounding and are not in any segment. */
  get residual(): Blocks {
    return this.#residual
  }

  /** Share of the last segment's squared norm that is left in the residual, if there is one. */
  get residualShare(): number | undefined {
    return this.#share
  }

  /**
   * Rounds the open segment, in place, and adds its integers to the list's sum.
   * @param isStale whether residuals are limited first
   * @param limits numbers of elements of each block that may be sent, with a budget
   * @returns how many are sent
   */
  close(open: Sum, sum: Sum, grid: LazyGrid, isStale: boolean, limits: readonly number[] = []): readonly number[] {
    let energy = 0
    let left = 0
    const sent: number[] = []
    for (let b = 0; b < open.length; b++) {
      const [segment, total, residual] = [open[b], sum[b], this.#residual[b]]
      const { values } = segment
      if (this.#budget && b < this.#budget.place) {
        const step = stepOf(exponentsAt(grid[b], undefined), 0)
        const block = closeSparse(segment, total, residual, step, limits[b], MAX_OWN)
        this.#budget.count(open[this.#budget.place].write(), b, block.nonZero, block.magnitude)
        sent.push(block.nonZero)
        energy += block.energy
        left += block.left
        continue
      }
      const indices = this.#elements(b, segment)
      const exponents = exponentsAt(grid[b], indices)
      const pending = this.#pending[b]
      pending?.clear()
      if (indices === undefined && segment.length >= MIN_KERNEL) {
        const block = closeDense(
          segment.write(),
          total.write(),
          residual,
          exponents,
          isStale ? MAX_STALE : undefined,
          pending && ((from, to) => addExcess(pending, residual, exponents, from, to))
        )
        energy += block.energy
        left += block.left
        continue
      }
      const length = indices?.length ?? segment.length
      for (let n = 0; n < length; n++) {
        const i = indices === undefined ? n : indices[n]
        if (values[i] === 0 && residual[i] === 0) continue
        const step = stepOf(exponents, n)
        const value = values[i] + leftOf(residual[i], step, isStale)
        const integer = integerOf(value, step, total.values[i])
        segment.set(i, integer * step)
        const rest = value - values[i]
        residual[i] = rest
        energy += value * value
        left += rest * rest
        if (Math.abs(rest) > step / 2) pending?.add(i)
        if (integer !== 0) total.add(i, integer)
      }
    }
    if (energy > 0) this.#share = Math.min(1, left / energy)
    return sent
  }

  /**
   * Elements to round: those of the open segment, and those whose residual may exceed half a step.
   * Residuals of other elements of a sparse block wait for the next gradient there. Undefined for
   * all elements.
   */
  #elements(block: number, open: SumBlock): Int32Array | undefined {
    const indices = open.nonZeroIndices
    if (indices === undefined) return undefined
    const pending = this.#pending[block]?.indices ?? []
    return pending.length === 0 ? indices : Int32Array.from(new Set([...indices, ...pending])).sort()
  }

  /** Adds the integers of the open segment to a copy of a block of the list's sum, like `close`. */
  preview(open: SumBlock, sum: SumBlock, grid: LazyGrid, block: number, isStale: boolean): void {
    const { values } = open
    const residual = this.#residual[block]
    const indices = this.#elements(block, open)
    const exponents = exponentsAt(grid[block], indices)
    const length = indices?.length ?? open.length
    for (let n = 0; n < length; n++) {
      const i = indices === undefined ? n : indices[n]
      if (values[i] === 0 && residual[i] === 0) continue
      const step = stepOf(exponents, n)
      sum.add(i, integerOf(values[i] + leftOf(residual[i], step, isStale), step, sum.values[i]))
    }
  }

  /** Adds what is not sent to the residual. */
  addToResidual(sum: readonly CompactBlock[]): void {
    for (const [b, block] of sum.entries()) forEachElement(block, (i, value) => (this.#residual[b][i] += value))
  }

  /** Adds a segment's integers on a grid to a list's sum. */
  static carry(sum: Sum, segment: readonly CompactBlock[], grid: LazyGrid): void {
    for (let b = 0; b < sum.length; b++) {
      const exponents = exponentsAt(grid[b], indicesOf(segment[b]))
      forEachElement(segment[b], (i, value, n) => sum[b].add(i, rounded(value, stepOf(exponents, n))))
    }
  }

  /**
   * The lineage uses a segment rounded to grid `now` instead of `before`.
   * @param original grid to which the segment was rounded when it was closed
   * @param before, now undefined if the lineage has not used it
   */
  settle(
    segment: readonly CompactBlock[],
    original: LazyGrid,
    before: LazyGrid | undefined,
    now: LazyGrid | undefined
  ): void {
    if (before === now) return
    for (let b = 0; b < segment.length; b++) {
      const residual = this.#residual[b]
      const indices = indicesOf(segment[b])
      const exponentsNow = otherExponents(now?.[b], original[b], indices)
      const exponentsBefore = otherExponents(before?.[b], original[b], indices)
      if (exponentsNow === undefined && exponentsBefore === undefined) continue
      forEachElement(segment[b], (i, value, n) => {
        if (value === 0) return
        const lost = lossOf(value, n, exponentsNow) - lossOf(value, n, exponentsBefore)
        if (lost === 0) return
        residual[i] += lost
        this.#pending[b]?.add(i)
      })
    }
  }
}

/** Adds the elements of a section whose residual exceeds half a step. */
function addExcess(pending: Support, residual: Float32Array, exponents: Int8Array, from: number, to: number): void {
  for (let i = from; i < to; i++) if (Math.abs(residual[i]) > stepOf(exponents, i) / 2) pending.add(i)
}

function leftOf(residual: number, step: number, isStale: boolean): number {
  return isStale ? Math.max(-MAX_STALE * step, Math.min(MAX_STALE * step, residual)) : residual
}

function indicesOf(block: CompactBlock): Int32Array | undefined {
  return block instanceof Float32Array ? undefined : block.indices
}

/** The exponents at the indices; undefined for the original ones, which take nothing away. */
function otherExponents(exponents: Exponents | undefined, original: Exponents, indices: Int32Array | undefined) {
  return exponents === undefined || exponents === original ? undefined : exponentsAt(exponents, indices)
}

/** The part of a value that rounding to a grid takes away. */
function lossOf(value: number, n: number, exponents: Int8Array | undefined): number {
  if (exponents === undefined) return 0
  const step = stepOf(exponents, n)
  return value - rounded(value, step) * step
}

/** The rounded value, or 0 if the list's sum would become too large. */
function integerOf(value: number, step: number, total: number): number {
  const integer = rounded(value, step)
  return Math.abs(total + integer) > MAX_OWN ? 0 : integer
}

/** Exponents of the steps of a block, as in `Grid`, or a function of the elements. */
export type Exponents = Int8Array | LazyExponents
/** The exponents of each block. Equal grids are the same object. */
export type LazyGrid = readonly Exponents[]

/** The exponents of a long block. */
class LazyExponents {
  readonly #compute: (indices: Int32Array | undefined) => Int8Array
  /** Exponents by the arrays of indices, because segments may be looked up much later. */
  readonly #known = new WeakMap<Int32Array, Int8Array>()
  #all: Int8Array | undefined

  constructor(compute: (indices: Int32Array | undefined) => Int8Array) {
    this.#compute = compute
  }

  /** Exponents of the elements at the indices, in their order; of all elements without indices. */
  of(indices: Int32Array | undefined): Int8Array {
    if (indices === undefined) {
      this.#all ??= this.#compute(undefined)
      return this.#all
    }
    const known = this.#known.get(indices) ?? this.#compute(indices)
    this.#known.set(indices, known)
    return known
  }
}

/** The grid of a predictor; undefined if the rule has none. */
export function gridOf(predictor: Predictor, { grid }: UpdateRule): LazyGrid | undefined {
  if (grid === undefined) return undefined
  const { shared, id } = predictor
  if (shared === undefined) return grid(predictor, id.updates)
  const { length } = shared
  const at = (indices: Int32Array): Grid => grid(gathered(shared, length, indices), id.updates)
  const short = at(new Int32Array(0))
  return predictor.parameters.map((block, b) =>
    block.length === length
      ? new LazyExponents(indices => (indices ? at(indices) : grid(predictor, id.updates))[b])
      : short[b]
  )
}

/** The exponents of a block's elements at the indices, or of all elements without indices. */
export function exponentsAt(exponents: Exponents, indices: Int32Array | undefined): Int8Array {
  if (exponents instanceof LazyExponents) return exponents.of(indices)
  if (indices === undefined || exponents.length === 1) return exponents
  const chosen = new Int8Array(indices.length)
  for (let n = 0; n < indices.length; n++) chosen[n] = exponents[indices[n]]
  return chosen
}

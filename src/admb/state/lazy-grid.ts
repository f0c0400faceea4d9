/** Grids of predictors whose arrays are shared: exponents are computed for the elements that are rounded, not for all. */
import type { Grid } from '../../base/lattice.js'
import type { UpdateRule } from '../../learner/types.js'
import { gathered } from './advance.js'
import type { Predictor } from './predictor.js'

/** Exponents of the steps of a block, as in `Grid`, or a function of the elements. */
export type Exponents = Int8Array | LazyExponents
/** The exponents of each block. Equal grids are the same object. */
export type LazyGrid = readonly Exponents[]

/** The exponents of a long block. */
class LazyExponents {
  readonly #compute: (indices: Int32Array | undefined) => Int8Array
  /** By the arrays of indices, because segments that were rounded to this grid may be looked up much later. */
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

/** The exponents of elements of a block: entry n is that of `indices[n]`, or without indices that of element n. */
export function exponentsAt(exponents: Exponents, indices: Int32Array | undefined): Int8Array {
  if (exponents instanceof LazyExponents) return exponents.of(indices)
  if (indices === undefined || exponents.length === 1) return exponents
  return Int8Array.from(indices, i => exponents[i])
}

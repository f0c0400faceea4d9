/**
 * Sparse integer sums of local steps, for lines on which bytes count. A node sends the few elements of each layer with the largest
 * unsent progress, and keeps the rest for later updates. All elements of a layer have one step, a power of two, which the predictor
 * carries. Each sum has two counts for each layer: its elements that are not 0, and their total magnitude. From these counts, all
 * nodes double or halve the step alike. Sending the largest elements with error feedback follows Aji and Heafield ("Sparse Communication for
 * Distributed Gradient Descent", EMNLP 2017) and SparseLoCo (Sarfi et al., 2025), whose sums are not exact.
 */
import { exponentOfRoot, type Grid, multiplyInto } from '../../numeric/lattice.js'
import { OptionError } from '../options.js'
import type { Blocks, Layout, Learner, SumBudget, UpdateRule } from '../types.js'
import { type CarriedBlock, carryingLearner, carryingRecipe } from './carried.js'

/** Mean magnitude of the elements sent above which a step doubles. */
const MAX_MEAN = 1.4
/** Share of the budget below which a step halves: so few elements reach half a step. */
const MIN_USE = 0.6
/** Smallest number of elements of a budget for which the used share is meaningful. */
const MIN_DUE = 8
/** Largest and smallest exponent of a step. */
const MAX_EXPONENT = 40
/** Bits of an element without those of its position: sign, magnitude and remainder of the Rice code of the gap. */
const ELEMENT_BITS = 3.8
/** Counts of a contributor that fills its budget are about as large, so that sums of counts are valid integers. */
const MAX_COUNT = 512
/** Mean square of an element of the first batch's sum, where the rule has no estimate. */
const FIRST_SQUARE = 1

/** @throws OptionError for a budget out of range */
export function checkSumBytes(bytes: number): void {
  if (!(bytes > 0 && bytes <= 1))
    throw new OptionError(`the bytes of a weight in sums must be above 0 and at most 1, not ${bytes}`)
}

/** The block with steps in predictors, and with counts in sums. */
export class SparseSums implements CarriedBlock, SumBudget {
  readonly name = 'sparse'
  readonly length: number
  readonly place: number
  readonly description: string
  readonly #bytes: number
  readonly #lengths: readonly number[]
  readonly #initial: number
  readonly #grids = new WeakMap<Float32Array, Grid>()

  /**
   * @param bytes that a contribution takes for each weight in an update
   * @param layout of the model, without blocks that predictors carry
   * @param options firstSquare: see `UpdateRule.firstSquare`
   */
  constructor(bytes: number, { blocks }: Layout, { firstSquare = FIRST_SQUARE } = {}) {
    this.#bytes = bytes
    this.description = `sum-bytes(${bytes})`
    this.#lengths = blocks.map(({ length }) => length)
    this.place = blocks.length
    this.length = 2 * blocks.length
    // A contribution is a part of a batch, and its largest elements are sent.
    this.#initial = limited(exponentOfRoot(firstSquare / 4))
  }

  /** Exponents of steps at even positions. */
  initial(): Float32Array {
    const block = new Float32Array(this.length)
    for (let k = 0; k < this.#lengths.length; k++) block[2 * k] = this.#initial
    return block
  }

  /**
   * The steps after a batch, from its counts alone.
   * @param counts for each layer elements that are not 0, and their total magnitude
   */
  next(
    before: Float32Array,
    counts: Float32Array,
    _count: number,
    _gradients: unknown,
    contributors = 1
  ): Float32Array {
    const next = new Float32Array(this.length)
    for (const [k, length] of this.#lengths.entries()) {
      const [nonZero, magnitude] = [counts[2 * k] * this.#unit(k), counts[2 * k + 1] * this.#unit(k)]
      const due = contributors * length * this.#density()
      const exponent = limited(before[2 * k])
      if (nonZero > 0 && magnitude > MAX_MEAN * nonZero) next[2 * k] = limited(exponent + 1)
      else if (due >= MIN_DUE && nonZero < MIN_USE * due) next[2 * k] = limited(exponent - 1)
      else next[2 * k] = exponent
    }
    return next
  }

  limits(): readonly number[] {
    const density = this.#density()
    return this.#lengths.map(length => Math.max(1, Math.ceil(length * density)))
  }

  count(counts: Float32Array, k: number, nonZero: number, magnitude: number): void {
    const unit = this.#unit(k)
    counts[2 * k] += Math.round(nonZero / unit)
    counts[2 * k + 1] += Math.round(magnitude / unit)
  }

  /** The steps of all elements at a predictor. Equal ones are the same object. */
  grid(parameters: Blocks): Grid {
    const block = parameters[this.place]
    const known = this.#grids.get(block)
    if (known !== undefined) return known
    const created = [...this.#lengths.map((_, k) => Int8Array.of(limited(block[2 * k]))), Int8Array.of(0)]
    this.#grids.set(block, created)
    return created
  }

  /** Share of a layer's elements that a contributor sends in an update: an element costs the bits of its position, and `ELEMENT_BITS`. */
  #density(): number {
    let density = this.#bytes
    for (let i = 0; i < 4; i++) density = Math.min(1, (8 * this.#bytes) / (ELEMENT_BITS + Math.max(0, -log2(density))))
    return density
  }

  /** Elements for each 1 of a count. */
  #unit(k: number): number {
    let unit = 1
    while (this.#lengths[k] * this.#density() > MAX_COUNT * unit) unit *= 2
    return unit
  }
}

/** The number may come from another peer, and is not trusted. */
function limited(exponent: number): number {
  return Math.max(-MAX_EXPONENT, Math.min(MAX_EXPONENT, Math.round(exponent) || 0))
}

const float = new Float32Array(1)
const floatBits = new Int32Array(float.buffer)

/** The logarithm, linear between powers of two: the same bits on every machine. */
function log2(value: number): number {
  float[0] = value
  return floatBits[0] / 2 ** 23 - 127
}

type Recipe = Parameters<typeof carryingRecipe>[0]

/** A model with sparse sums, whose layout contains nothing that predictors carry. */
export function sparseParts<R extends Recipe, Parts extends { readonly learner: Learner; readonly recipe: R }>(
  parts: Parts,
  sparse: SparseSums
): Parts {
  const { learner, recipe } = parts
  return { ...parts, learner: carryingLearner(learner, [sparse]), recipe: sparseRecipe(recipe, sparse) }
}

function sparseRecipe<R extends Recipe>(recipe: R, sparse: SparseSums): R {
  const { rule } = recipe
  const { begin } = rule
  if (begin === undefined) throw new OptionError('sparse sums are for local steps: give --local-steps')
  const last = sparse.place
  const started: NonNullable<UpdateRule['begin']> = (previous, count, updates, contributors) => {
    const { parameters, state } = previous
    const grid = sparse.grid(parameters)
    const { states, section, end } = begin({ parameters: parameters.slice(0, last), state }, count, updates)
    let scratch = new Float32Array(0)
    return {
      states,
      section(k, from, weights, velocities, sum) {
        if (k === last) {
          weights.set(sparse.next(parameters[last], sum, count, undefined, contributors))
          return
        }
        if (scratch.length < sum.length) scratch = new Float32Array(sum.length)
        section(k, from, weights, velocities, multiplyInto(scratch.subarray(0, sum.length), sum, grid[k]))
      },
      end
    }
  }
  return {
    ...carryingRecipe(recipe, [sparse]),
    rule: {
      name: rule.name,
      description: `${rule.description} ${sparse.description}`,
      stateLayout: layout => rule.stateLayout(layout),
      begin: started,
      step(previous, sum, count, updates, contributors) {
        const { states, section, end } = started(previous, count, updates, contributors)
        const [parameters, state] = [previous.parameters, previous.state].map(blocks =>
          blocks.map(block => block.slice())
        )
        for (const [k, block] of sum.entries())
          section(k, 0, parameters[k], state.slice(k * states, (k + 1) * states), block)
        return { parameters, state: [...state.slice(0, states * sum.length), ...end()] }
      },
      grid: ({ parameters }) => sparse.grid(parameters)
    }
  }
}

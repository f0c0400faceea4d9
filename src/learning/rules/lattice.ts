/**
 * Update rules for integer gradient sums. The grid of a predictor follows from its rule's state: the step of an element is the
 * power of two nearest to √(c·V/m), where V estimates the mean square of a batch's gradient sum at this element, m is the number
 * of contributors of a batch, and c is 1, or 1/8 or 1/64 if batches have few elements. Rounding at m contributors then adds c/12
 * of V to the variance of a batch's sum.
 */
import { countNonZero, exponentsOfRoots } from '../../numeric/block-kernels.js'
import { exponentOfRoot, type Grid, multiplyInto, valuesOf } from '../../numeric/lattice.js'
import type { Averaging, Blocks, Digest, Layout, RoundedBlocks, RuleState, UpdateRule } from '../types.js'

interface LatticeOptions {
  /** b: gradients of a batch, before the first update tells how many there are. */
  readonly batch: number
}

/** An update rule whose sums are integers. */
type LatticeRule = UpdateRule & Required<Pick<UpdateRule, 'grid'>>

/** Contributors of a batch before the first update. */
const FIRST_CONTRIBUTORS = 16
/** Mean square of the gradient of an input, before the first update. */
const FIRST_SQUARE = 1e-4
/** Batches with few elements have finer grids: their frames consist mostly of headers, so precision costs little. Factors of V. */
const FINER = [
  { most: 64, factor: 1 / 64 },
  { most: 512, factor: 1 / 8 }
]
/** Minimum weight of a batch in the estimates. */
const LEAST_WEIGHT = 0.25

/** Elements of the statistics before the mean squares: contributors, gradients and elements of recent batches. */
const CONTRIBUTORS = 0
const GRADIENTS = 1
const ELEMENTS = 2
const SQUARES = 3

/** The recipe for integer sums. */
export function latticeRecipe<R extends { readonly rule: UpdateRule; readonly digest: Digest }>(
  recipe: R,
  options: LatticeOptions
): R & { readonly rule: LatticeRule } {
  return { ...recipe, rule: latticeRule(recipe.rule, options), digest: latticeDigest(recipe.digest) }
}

/**
 * The digest of predictors with a block of estimates, which it leaves out while all are unknown. So a predictor that was made with
 * float32 sums keeps its id.
 */
function latticeDigest(digest: Digest): Digest {
  const { incremental } = digest
  return Object.assign(
    (groups: readonly Blocks[]) => digest(withoutUnknown(groups)),
    // The block is too short for a hash tree.
    incremental && {
      incremental(groups: readonly Blocks[]) {
        const { changed, of } = incremental(groups)
        return { changed, of: (now: readonly Blocks[]) => of(withoutUnknown(now)) }
      }
    }
  )
}

function withoutUnknown(groups: readonly Blocks[]): readonly Blocks[] {
  const state = groups[groups.length - 1]
  const isKnown = state[state.length - 1].some(estimate => !Object.is(estimate, 0))
  return isKnown ? groups : [...groups.slice(0, -1), state.slice(0, -1)]
}

/** The state of a rule as that of its rule for integer sums: nothing is known yet. */
export function withEstimates(state: Blocks, { blocks }: Layout): Float32Array[] {
  return [...state, new Float32Array(blocks[blocks.length - 1].length)]
}

/**
 * The rule for integer sums. State: that of the rule, then a block with the number of contributors, of gradients and of elements
 * other than 0 of recent batches, and if the rule itself has no estimate of squares, the mean square of each block of recent sums.
 * 0: not known yet.
 */
function latticeRule(rule: UpdateRule, { batch }: LatticeOptions): LatticeRule {
  const grids = new WeakMap<Float32Array, Grid>()
  const split = (state: Blocks): readonly [statistics: Float32Array, inner: Blocks] => [
    state[state.length - 1],
    state.slice(0, -1)
  ]
  const grid = ({ parameters, state }: RuleState, updates: number): Grid => {
    const [statistics, inner] = split(state)
    const known = grids.get(statistics)
    if (known !== undefined) return known
    const contributors = statistics[CONTRIBUTORS] || FIRST_CONTRIBUTORS
    const count = statistics[GRADIENTS] || batch
    const elements = statistics[ELEMENTS] || parameters.reduce((sum, { length }) => sum + length, 0)
    const factor = (FINER.find(({ most }) => elements <= most)?.factor ?? 1) / contributors
    const created = parameters.map((_, k) => {
      const squares = rule.squares?.(inner, k, count, updates)
      return squares === undefined
        ? Int8Array.of(exponentOfRoot(factor * (statistics[SQUARES + k] || (rule.firstSquare ?? FIRST_SQUARE * count))))
        : exponentsOfRoots(squares, factor)
    })
    grids.set(statistics, created)
    return created
  }
  return {
    name: rule.name,
    description: `${rule.description} lattice`,
    stateLayout(layout) {
      const length = SQUARES + (rule.squares === undefined ? layout.blocks.length : 0)
      return { blocks: [...rule.stateLayout(layout).blocks, { name: 'lattice', length, isExact: true }] }
    },
    isLocal: rule.isLocal === true && rule.squares !== undefined,
    minWeight: rule.minWeight && (state => rule.minWeight?.(split(state)[1]) ?? 0),
    step(previous, sum, count, updates, contributors = 1) {
      const [statistics, inner] = split(previous.state)
      const values = valuesOf(sum, grid(previous, updates))
      const { parameters, state } = rule.step({ parameters: previous.parameters, state: inner }, values, count, updates)
      const sums = new Sums(statistics.length - SQUARES)
      for (const [k, block] of values.entries()) sums.add(k, block)
      return { parameters, state: [...state, advanced(statistics, sums, count, updates, contributors)] }
    },
    begin:
      rule.begin &&
      ((previous, count, updates, contributors = 1) => {
        const [statistics, inner] = split(previous.state)
        const steps = grid(previous, updates)
        const { states, section, end } = (rule.begin as NonNullable<typeof rule.begin>)(
          { parameters: previous.parameters, state: inner },
          count,
          updates
        )
        const sums = new Sums(statistics.length - SQUARES)
        let scratch = new Float32Array(0)
        return {
          states,
          section(k, from, parameters, state, sum) {
            const { length } = steps[k]
            const exponents = length === 1 ? steps[k] : steps[k].subarray(from, from + sum.length)
            if (scratch.length < sum.length) scratch = new Float32Array(sum.length)
            const values = multiplyInto(scratch.subarray(0, sum.length), sum, exponents)
            sums.add(k, values)
            section(k, from, parameters, state, values)
          },
          end: () => [...end(), advanced(statistics, sums, count, updates, contributors)]
        }
      }),
    grid
  }
}

/** What the statistics need of a batch's sum. */
class Sums {
  nonZero = 0
  /** Sum of squares of each block, unless the rule has estimates; and its length. */
  readonly #squares: Float64Array
  readonly #lengths: Float64Array

  constructor(blocks: number) {
    this.#squares = new Float64Array(blocks)
    this.#lengths = new Float64Array(blocks)
  }

  add(k: number, values: Float32Array): void {
    this.nonZero += countNonZero(values, false)
    if (k >= this.#squares.length) return
    let sum = this.#squares[k]
    for (let i = 0; i < values.length; i++) sum += values[i] * values[i]
    this.#squares[k] = sum
    this.#lengths[k] += values.length
  }

  meanSquare(k: number): number {
    return this.#lengths[k] === 0 ? 0 : this.#squares[k] / this.#lengths[k]
  }
}

/** The statistics after a batch. */
function advanced(before: Float32Array, sums: Sums, count: number, updates: number, contributors: number) {
  const next = before.slice()
  next[CONTRIBUTORS] = smoothed(before[CONTRIBUTORS], contributors)
  next[GRADIENTS] = smoothed(before[GRADIENTS], count)
  next[ELEMENTS] = smoothed(before[ELEMENTS], Math.max(1, sums.nonZero))
  const weight = Math.max(LEAST_WEIGHT, 1 / (updates + 1))
  for (let k = 0; k < next.length - SQUARES; k++) next[SQUARES + k] += weight * (sums.meanSquare(k) - next[SQUARES + k])
  return next
}

/** At most twice and at least half of the previous value. */
function smoothed(before: number, now: number): number {
  if (before === 0) return now
  return before + LEAST_WEIGHT * (Math.max(before / 2, Math.min(2 * before, now)) - before)
}

/** Shorter blocks are not rounded: they take few bytes. */
const MIN_LENGTH = 1024

/**
 * @param layout of the parameters
 * @param least length of the shortest blocks that are rounded @default 1024
 */
export function roundedRecipe<R extends { readonly rule: UpdateRule; readonly averaging: Averaging }>(
  recipe: R,
  layout: Layout,
  least = MIN_LENGTH
): R & { readonly rounded: RoundedBlocks } {
  const isRounded = ({ blocks }: Layout) => blocks.map(({ length, isExact }) => length >= least && !isExact)
  const { rule, averaging } = recipe
  const rounded = {
    parameters: isRounded(layout),
    average: isRounded(averaging.layout?.(layout) ?? layout),
    state: isRounded(rule.stateLayout(layout))
  }
  return { ...recipe, rounded }
}

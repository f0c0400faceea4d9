/**
 * The content of a predictor that updates change in place, with the bits of updates that allocate. If the rule is local and
 * gradients are sparse, an update takes time for the elements that have a gradient, and for those in which the average differs.
 * Blocks of parameters are created, grown, and projected onto a Euclidean ball.
 */
import { blocksOf, type Sum } from '../../numeric/sums.js'
import { nonZeroIndices, Support } from '../../numeric/support.js'
import { stepTouched, type Touched } from '../../numeric/touched.js'
import { mixInto, type WeightedAveraging } from '../rules/averaging.js'
import type { Averaging, Blocks, Content, Layout, UpdateRule } from '../types.js'

interface Recipe {
  readonly rule: UpdateRule
  /** That predictors contain as it is. */
  readonly averaging: Averaging
}

type Groups = readonly [parameters: Blocks, state: Blocks]

export class WorkingContent implements Content {
  readonly #recipe: Recipe
  #parameters: Blocks
  #average: Blocks
  #state: Blocks
  /** Elements of the first block in which parameters and average may differ; undefined if these are many. */
  #differing: Support | undefined

  /** @param content is copied */
  constructor({ parameters, average, state }: Content, recipe: Recipe) {
    this.#recipe = recipe
    this.#parameters = copyOf(parameters)
    this.#average = copyOf(average)
    this.#state = copyOf(state)
    const difference = average[0].map((w, i) => w - parameters[0][i])
    this.#differing = supportFrom(nonZeroIndices(difference), difference.length)
  }

  /** Valid until the next update, as all blocks. */
  get parameters(): Blocks {
    return this.#parameters
  }

  get average(): Blocks {
    return this.#average
  }

  get state(): Blocks {
    return this.#state
  }

  /** One update. @param updates number of updates before */
  update(sum: Sum, count: number, updates: number): void {
    const { rule, averaging } = this.#recipe
    const before = this.#parameters
    this.#step(sum, count, updates)
    const least = rule.minWeight?.(this.#state)
    if (isWeighted(averaging)) this.#mix(averaging.weight(updates, least))
    else this.#average = averaging.average(this.#average, this.#parameters, updates, before, least)
  }

  /** Replaces a block of the parameters, which is not averaged. */
  replaceBlock(before: Float32Array, block: Float32Array): void {
    const number = this.#parameters.indexOf(before)
    this.#parameters = this.#parameters.with(number, block)
    this.#average = this.#average.with(number, block)
  }

  /** Lengthens blocks to a layout, with zeros. */
  grow(layout: Layout): void {
    this.#parameters = grown(this.#parameters, layout)
    this.#average = grown(this.#average, layout)
    this.#state = grown(this.#state, this.#recipe.rule.stateLayout(layout))
    this.#differing = supportFrom(this.#differing?.indices, this.#parameters[0].length)
  }

  #step(sum: Sum, count: number, updates: number): void {
    const { rule, averaging } = this.#recipe
    const step = ([parameters, state]: Groups, sum: Blocks): Groups => {
      const next = rule.step({ parameters, state }, sum, count, updates)
      return [next.parameters, next.state]
    }
    const groups: Groups = [this.#parameters, this.#state]
    // A lazy average needs the parameters as they were.
    const isInPlace = rule.isLocal && averaging.contain === undefined
    const touched = isInPlace ? stepTouched(groups, sum, step) : undefined
    const [parameters, state] = touched === undefined ? step(groups, blocksOf(sum)) : scatter(groups, touched)
    this.#parameters = parameters
    this.#state = state
    if (touched === undefined || touched.length !== parameters[0].length) this.#differing = undefined
    else for (const i of touched.indices) this.#differing?.add(i)
  }

  /** w̄ ← w̄ + γ·(w − w̄), in place. */
  #mix(weight: number): void {
    const [average, now] = [this.#average, this.#parameters]
    const indices = this.#differing?.indices
    if (indices === undefined || indices.length > average[0].length / 2) mixInto(average[0], now[0], weight)
    else for (const i of indices) average[0][i] += weight * (now[0][i] - average[0][i])
    for (let b = 1; b < average.length; b++) mixInto(average[b], now[b], weight)
  }
}

/** Without an average, the average is the parameters. */
function isWeighted(averaging: Averaging): averaging is WeightedAveraging {
  return averaging.name !== 'none' && 'weight' in averaging
}

function copyOf(blocks: Blocks): Blocks {
  return blocks.map(block => block.slice())
}

function supportFrom(indices: Int32Array | undefined, length: number): Support | undefined {
  if (indices === undefined) return undefined
  const support = new Support(length)
  for (const i of indices) support.add(i)
  return support
}

/** Writes what an update changes to the long blocks, in place. */
function scatter(groups: Groups, { length, indices, values, short }: Touched): Groups {
  const [long, others] = [values.values(), short.values()]
  const placed = (blocks: Blocks) =>
    blocks.map(block => {
      if (block.length !== length) return others.next().value as Float32Array
      const next = long.next().value as Float32Array
      for (let n = 0; n < indices.length; n++) block[indices[n]] = next[n]
      return block
    })
  const [parameters, state] = groups
  return [placed(parameters), placed(state)]
}

/** Blocks of zeros with the given layout. */
export function zeros(layout: Layout): Float32Array[] {
  return layout.blocks.map(block => new Float32Array(block.length))
}

/** Blocks of a larger layout that start with the elements of the given blocks, followed by zeros. */
export function grown(blocks: Blocks, layout: Layout): Float32Array[] {
  return layout.blocks.map((block, k) => {
    const larger = new Float32Array(block.length)
    larger.set(blocks[k])
    return larger
  })
}

/**
 * Π_W in place for W = {w : ‖w‖ ≤ radius}, with the norm over all blocks together. Without a radius, does nothing.
 * Uses only + × ÷ and a square root, so a replay gives equal bits.
 */
export function projectOntoBall(blocks: Blocks, radius: number | undefined): void {
  if (radius === undefined) return
  let square = 0
  for (const block of blocks) for (let i = 0; i < block.length; i++) square += block[i] * block[i]
  if (square <= radius * radius) return
  const scale = radius / Math.sqrt(square)
  for (const block of blocks) for (let i = 0; i < block.length; i++) block[i] *= scale
}

/**
 * For each block of parameters, the indices of its blocks in the rule's state for the whole layout. Counters, which all blocks
 * share, are in every list.
 */
export function stateBlockIndices(rule: UpdateRule, layout: Layout): readonly (readonly number[])[] {
  const whole = rule.stateLayout(layout).blocks.map(({ name }) => name)
  return layout.blocks.map(block => rule.stateLayout({ blocks: [block] }).blocks.map(({ name }) => whole.indexOf(name)))
}

/**
 * With a test of ascents: a node uses no sum that increases the loss of its recent inputs by more than four standard errors, and no
 * further sums of a neighbour whose sums have increased it by more than eight together. Each predictor adds half a standard error less
 * than its increase, from −1 to 3.5. All increases are divided by twice the mean square of those by own sums, if that is more than 1.
 */
import { formatId, type Recipe } from '../../src/admb/index.js'
import type { Blocks } from '../../src/learner/index.js'
import { Violation } from '../result.js'
import type { CheckedNode, Invariant } from './invariant.js'

const SINGLE = 4
const ALLOWANCE = 0.5
const TOGETHER = 8
const LEAST_ADDED = -1
const MOST_ADDED = 3.5
const FIRST_SQUARE = 1

interface Increases {
  /** The predictor of the last one. */
  readonly at: string
  readonly before: number
  readonly sum: number
}

export class Ascents implements Invariant {
  readonly #recipe: Recipe
  /** By node and neighbour: what the sums in use have added. */
  readonly #increases = new WeakMap<CheckedNode, Map<string, Increases>>()

  /** Mean square of the increases by own sums. */
  readonly #squares = new WeakMap<CheckedNode, number>()
  /** Number of gradients in the sums in use that have been judged. */
  readonly #judged = new WeakMap<Blocks, number>()

  constructor(recipe: Recipe) {
    this.#recipe = recipe
  }

  ascentMeasured(checked: CheckedNode, after: Blocks, increase: number): void {
    const { predictor, ownSum } = checked.node
    const { sum, count } = ownSum
    if (count === 0) return
    const { parameters } = this.#recipe.rule.step(predictor, sum, count, predictor.id.updates, 1)
    if (!parameters.every((block, b) => block.every((value, i) => Object.is(value, after[b][i])))) return
    const square = this.#squares.get(checked) ?? FIRST_SQUARE
    this.#squares.set(checked, square + (Math.min(20, Math.max(0, increase)) ** 2 - square) / 32)
  }

  frameReceived(checked: CheckedNode, edge: number): void {
    const { ascent, node, origin, edges } = checked
    const held = checked.neighbourSum(edge)
    const peer = edges.get(edge)?.peer
    if (ascent === undefined || peer === undefined || held === undefined || held.count === 0) return
    const { predictor } = node
    const { sum, count, contributors } = held
    // Later inputs may judge differently.
    const isKnown = this.#judged.get(sum) === count
    this.#judged.set(sum, count)
    if (isKnown) return
    const after = this.#recipe.rule.step(predictor, sum, count, predictor.id.updates, contributors.length)
    const scale = Math.max(1, 2 * (this.#squares.get(checked) ?? FIRST_SQUARE))
    const errors = ascent(predictor.parameters, after.parameters) / scale
    const total = this.#add(checked, peer, formatId(predictor.id), errors)
    if (errors > SINGLE || total > TOGETHER)
      throw new Violation(
        'ascent',
        `${origin} uses a sum of ${peer} that increases its loss by ${errors} standard errors, ${total} with earlier ones`
      )
  }

  #add(checked: CheckedNode, peer: string, at: string, errors: number): number {
    const increases = this.#increases.get(checked) ?? new Map<string, Increases>()
    this.#increases.set(checked, increases)
    const last = increases.get(peer)
    const before = last === undefined ? 0 : last.at === at ? last.before : last.sum
    const sum = Math.max(0, before + Math.min(MOST_ADDED, Math.max(LEAST_ADDED, errors - ALLOWANCE)))
    increases.set(peer, { at, before, sum })
    return sum
  }
}

/** The bound of influence: no node uses more of another than the predictor allows. */
import { formatId, type Predictor, type Recipe } from '../../src/admb/index.js'
import { valuesOf } from '../../src/base/lattice.js'
import type { Blocks, InfluenceRule } from '../../src/learner/index.js'
import { Violation } from '../result.js'
import type { CheckedNode, Invariant, PredictorChange } from './invariant.js'

/** Rounding errors, and what a hostile node can add without being refused. */
const TOLERANCE = 2e-3

/**
 * A sum that a node holds, and a batch, have a norm of at most scale · √(contributors · inputs) in each bounded block, and not more votes
 * for a larger scale than inputs. Nodes that keep to the bound are never refused (`Acceptance`).
 */
export class BoundedInfluence implements Invariant {
  readonly #rule: InfluenceRule
  readonly #recipe: Recipe

  constructor(rule: InfluenceRule, recipe: Recipe) {
    this.#rule = rule
    this.#recipe = recipe
  }

  frameReceived(checked: CheckedNode, edge: number): void {
    const held = checked.neighbourSum(edge)
    if (held === undefined) return
    const what = `the sum that ${checked.origin} holds from ${checked.edges.get(edge)?.peer}`
    this.#check(what, checked.node.predictor, held.sum, held.count, held.contributors.length)
  }

  predictorChanged(_checked: CheckedNode, change: PredictorChange): void {
    if (change.cause !== 'updated') return
    const { parent, header, batch } = change
    const contributors = header.coverage.segments.filter(covered => covered > 0).length
    this.#check(`the batch of ${formatId(header.id)}`, parent, batch.sum, batch.count, contributors)
  }

  #check(what: string, at: Predictor, sum: Blocks, count: number, contributors: number): void {
    const grid = this.#recipe.rule.grid?.(at, at.id.updates)
    const values = grid ? valuesOf(sum as Float32Array[], grid) : sum
    const most = Math.sqrt(contributors * count) * (1 + TOLERANCE)
    for (const [b, scale] of this.#rule.of(at.parameters).entries()) {
      const votes = values[this.#rule.index][b]
      if (votes > count * (1 + TOLERANCE)) throw new Violation('influence', `${what} has ${votes} votes of ${count}`)
      const norm = Math.hypot(...values[b])
      if (scale > 0 && norm > scale * most)
        throw new Violation('influence', `${what} has a norm of ${norm}, the bound is ${scale * most}`)
    }
  }
}

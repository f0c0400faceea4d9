/**
 * Groups predictors by their line of descent: those that the best predictor was made from, and the branches beside them. As long as
 * a run continues, the best one may change, and with it the groups of earlier predictors.
 */
import { MARKS } from '../format.js'
import { AWAY, type PredictorEntry } from './messages.js'

export class Lineages {
  readonly #entries: PredictorEntry[] = []
  /** Group of each predictor whose group is known: 0 for ancestors of the best one. */
  #groups = new Map([[0, 0]])
  /** First predictors of the branches, in the order in which they were drawn. */
  readonly #branches = new Map<number, number>()
  #best = 0

  add(entries: readonly PredictorEntry[]): void {
    this.#entries.push(...entries)
  }

  get(number: number): PredictorEntry {
    return this.#entries[number]
  }

  /** Tells which predictors are held last. */
  update(held: Int32Array): void {
    let best = this.#best
    for (const number of held) if (number !== AWAY && this.#isBetter(number, best)) best = number
    if (best === this.#best) return
    this.#best = best
    this.#groups = new Map([[0, 0]])
    for (let at: number | undefined = best; at !== undefined; at = this.#entries[at].parent) this.#groups.set(at, 0)
  }

  /** 0 for an ancestor of the best predictor; another number for each branch. */
  groupOf(number: number): number {
    const known = this.#groups.get(number)
    if (known !== undefined) return known
    const { parent } = this.#entries[number]
    const above = parent === undefined ? 0 : this.groupOf(parent)
    const group = above === 0 ? this.#branchOf(number) : above
    this.#groups.set(number, group)
    return group
  }

  #branchOf(number: number): number {
    const index = this.#branches.get(number) ?? this.#branches.size
    this.#branches.set(number, index)
    // Group 0 has its colour alone.
    return 1 + index + Math.floor(index / (MARKS - 1))
  }

  /** More updates, then the lower origin. */
  #isBetter(a: number, b: number): boolean {
    const [one, other] = [this.#entries[a], this.#entries[b]]
    return one.updates > other.updates || (one.updates === other.updates && one.origin < other.origin)
  }
}

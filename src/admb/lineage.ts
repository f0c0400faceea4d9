/**
 * The headers that a node has held, of whatever branch. A neighbour sends headers back to the predictor that this node said it
 * holds; by the time they arrive it may have turned to another branch, and without memory of the first one the lineage
 * would break off there, and gradients that nobody used would count as used.
 */
import { nameKey } from './name.js'
import type { Header } from './predictor.js'

/** Branches of full length that find room. */
const BRANCHES = 4

export class HeaderMemory {
  readonly #limit: number
  /** By name; those of the newest lineages last. */
  readonly #headers = new Map<string, Header>()

  /** @param limit the greatest number of headers of one lineage */
  constructor(limit: number) {
    this.#limit = limit
  }

  /**
   * Joins received headers with what is known of their ancestors, and remembers them.
   * @param chain newest first, each the parent of the one before
   * @returns the lineage, newest first
   */
  extend(chain: readonly Header[]): Header[] {
    const lineage = chain.slice(0, this.#limit)
    for (let oldest = lineage.at(-1); oldest && lineage.length < this.#limit; oldest = lineage.at(-1)) {
      const parent = this.#headers.get(nameKey(oldest.parent))
      if (parent === undefined) break
      lineage.push(parent)
    }
    for (const header of lineage.toReversed()) {
      const key = nameKey(header.name)
      this.#headers.delete(key)
      this.#headers.set(key, header)
    }
    for (const key of this.#headers.keys()) {
      if (this.#headers.size <= BRANCHES * this.#limit) break
      this.#headers.delete(key)
    }
    return lineage
  }
}

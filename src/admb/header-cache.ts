/**
 * The headers that a node has held, of whatever branch. A neighbour sends headers back to the predictor that this node said it
 * holds; by the time they arrive it may have turned to another branch, and without memory of the first one the lineage
 * would break off there, and gradients that nobody used would count as used.
 */

import type { Header } from './predictor.js'
import { formatId, sameId } from './predictor-id.js'

/** Branches of full length that find room. */
const BRANCHES = 4

export class HeaderCache {
  readonly #limit: number
  /** By name, oldest arrivals first. */
  readonly #headers = new Map<string, Header>()
  /** The lineage given last: nearly always the next one goes on from it. */
  #last: readonly Header[] = []

  /** @param limit the greatest number of headers of one lineage */
  constructor(limit: number) {
    this.#limit = limit
  }

  /**
   * Joins received headers with what is known of their ancestors, and remembers them.
   * @param chain newest first, each the parent of the one before
   * @returns the lineage, newest first
   */
  extend(chain: readonly Header[]): readonly Header[] {
    for (const header of chain) this.#headers.set(formatId(header.id), header)
    const oldest = chain.at(-1)
    const from = oldest ? this.#last.findIndex(({ id }) => sameId(id, oldest.parent)) : -1
    const lineage = from < 0 ? this.#extendFromCache(chain) : chain.concat(this.#last.slice(from, from + this.#limit))
    if (lineage.length > this.#limit) lineage.length = this.#limit
    for (const key of this.#headers.keys()) {
      if (this.#headers.size <= BRANCHES * this.#limit) break
      this.#headers.delete(key)
    }
    this.#last = lineage
    return lineage
  }

  /** The chain and the ancestors that are remembered from other branches. */
  #extendFromCache(chain: readonly Header[]): Header[] {
    const lineage = chain.slice()
    while (lineage.length > 0 && lineage.length < this.#limit) {
      const parent = this.#headers.get(formatId(lineage[lineage.length - 1].parent))
      if (parent === undefined) break
      lineage.push(parent)
    }
    return lineage
  }
}

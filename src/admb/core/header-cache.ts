/**
 * Headers of recent predictors on any branch. A neighbour sends headers back to the predictor that this node has reported;
 * when they arrive, the node may have switched to another branch. Without the headers of the first branch the lineage would
 * end there, and unused gradients would count as used.
 */

import type { Header } from '../state/predictor.js'
import { idKey, type PredictorId, sameId } from '../state/predictor-id.js'
import { areLow, LINEAGE_LIMITS, lineageLength, sizeOfCoverages } from '../wire/limits.js'

/** Number of full-length branches that fit. */
const BRANCHES = 4

export class HeaderCache {
  readonly #limit: number
  /** By predictor id, in order of insertion. */
  readonly #headers = new Map<string, Header>()
  /** Total number of contributors in their coverages. */
  #contributors = 0
  /** The lineage returned last: the next one mostly extends it. */
  #last: readonly Header[] = []
  /** Total number of contributors in its coverages, and whether all have low indices. */
  #lastSize = 0
  #isLastLow = true

  /** @param limit maximum number of headers of a lineage */
  constructor(limit: number) {
    this.#limit = limit
  }

  /**
   * Extends received headers with cached headers of their ancestors, and caches them.
   * @param chain newest first, each the parent of the previous one
   * @returns the lineage, newest first
   */
  extend(chain: readonly Header[]): readonly Header[] {
    for (const header of chain) this.#add(header)
    const oldest = chain.at(-1)
    const from = oldest ? this.#last.findIndex(({ id }) => sameId(id, oldest.parent)) : -1
    const lineage =
      from < 0 ? this.#extendFromCache(chain) : chain.concat(from === 0 ? this.#last : this.#last.slice(from))
    this.#shorten(lineage, chain, from)
    for (const [key, { coverage }] of this.#headers) {
      if (this.#contributors <= LINEAGE_LIMITS.any && this.#headers.size <= BRANCHES * this.#limit) break
      this.#headers.delete(key)
      this.#contributors -= coverage.contributors.length
    }
    this.#last = lineage
    return lineage
  }

  /** Shortens a lineage to the limits. @param from position in the last lineage from which it continues the chain; −1 for none */
  #shorten(lineage: Header[], chain: readonly Header[], from: number): void {
    // The last lineage has been measured, so mostly only the chain is new.
    let size =
      from < 0
        ? sizeOfCoverages(lineage)
        : this.#lastSize - sizeOfCoverages(this.#last, 0, from) + sizeOfCoverages(chain)
    const isLow = from < 0 ? lineage.every(areLow) : this.#isLastLow && chain.every(areLow)
    size -= sizeOfCoverages(lineage, this.#limit)
    lineage.length = Math.min(lineage.length, this.#limit)
    const length = lineageLength(lineage, size, isLow)
    this.#lastSize = size - sizeOfCoverages(lineage, length)
    this.#isLastLow = isLow
    lineage.length = length
  }

  /** Whether the header of this predictor, or of a child of it on the last lineage, is known. */
  has(id: PredictorId): boolean {
    const oldest = this.#last.at(-1)
    return this.#headers.has(idKey(id)) || (oldest !== undefined && sameId(oldest.parent, id))
  }

  #add(header: Header): void {
    const key = idKey(header.id)
    this.#contributors +=
      header.coverage.contributors.length - (this.#headers.get(key)?.coverage.contributors.length ?? 0)
    this.#headers.set(key, header)
  }

  /** Adds the contributors in the coverages of all headers. */
  mark(live: Set<number>): void {
    for (const { coverage } of [...this.#headers.values(), ...this.#last])
      for (const contributor of coverage.contributors) live.add(contributor)
  }

  /** The chain with all ancestors found in the cache. */
  #extendFromCache(chain: readonly Header[]): Header[] {
    const lineage = chain.slice()
    while (lineage.length > 0 && lineage.length < this.#limit) {
      const parent = this.#headers.get(idKey(lineage[lineage.length - 1].parent))
      if (parent === undefined) break
      lineage.push(parent)
    }
    return lineage
  }
}

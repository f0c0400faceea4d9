/**
 * A contributor of gradients is a node in one of its incarnations. Coverages refer to contributors so often that each
 * node interns them: coverages hold indices into its table.
 */
import { FrameError } from './bytes.js'
import type { PredictorId } from './predictor-id.js'

/** One node in one incarnation. */
export interface Contributor {
  readonly origin: string
  readonly incarnation: number
}

/** Assigns the indices 0, 1, 2, … to contributors in the order in which they are first seen. */
export class ContributorTable {
  /** Indices by origin, then by incarnation. */
  readonly #indices = new Map<string, Map<number, number>>()
  readonly #contributors: Contributor[] = []
  readonly #limit: number
  /** Cache of the last lookup: a frame refers to the origin of its predictor several times. */
  #lastIndex = -1
  /** The same for `indexOfOrigin`. */
  #lastId: PredictorId | undefined
  #lastOrigin = -1

  /** @param limit maximum number of contributors; further ones are rejected */
  constructor(limit = 1 << 20) {
    this.#limit = limit
  }

  get size(): number {
    return this.#contributors.length
  }

  /**
   * Index of the contributor, which is added if it is new.
   * @throws FrameError if the table is full
   */
  indexOf(origin: string, incarnation: number): number {
    const last = this.#contributors[this.#lastIndex]
    if (last !== undefined && last.origin === origin && last.incarnation === incarnation) return this.#lastIndex
    let incarnations = this.#indices.get(origin)
    let index = incarnations?.get(incarnation)
    if (index === undefined) {
      index = this.#contributors.length
      if (index >= this.#limit) throw new FrameError(`more than ${this.#limit} contributors`)
      if (incarnations === undefined) {
        incarnations = new Map()
        this.#indices.set(origin, incarnations)
      }
      incarnations.set(incarnation, index)
      this.#contributors.push({ origin, incarnation })
    }
    this.#lastIndex = index
    return index
  }

  /** Index of the contributor that computed a predictor; −1 for the starting predictor. */
  indexOfOrigin(id: PredictorId): number {
    if (id !== this.#lastId) {
      this.#lastId = id
      this.#lastOrigin = id.updates > 0 ? this.indexOf(id.origin, id.incarnation) : -1
    }
    return this.#lastOrigin
  }

  contributor(index: number): Contributor {
    const found = this.#contributors[index]
    if (found === undefined) throw new RangeError(`no contributor with index ${index}`)
    return found
  }
}

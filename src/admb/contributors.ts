/**
 * A contributor of gradients is a node in one of its incarnations. Coverages mention contributors all the time, so each
 * node numbers those it has heard of and coverages hold numbers.
 */
import { FrameError } from './bytes.js'
import type { PredictorId } from './predictor-id.js'

/** One node in one incarnation. */
export interface Contributor {
  readonly origin: string
  readonly incarnation: number
}

/** Numbers contributors 0, 1, 2, … in the order in which they were first met. */
export class ContributorTable {
  /** By origin, then by incarnation. */
  readonly #indices = new Map<string, Map<number, number>>()
  readonly #contributors: Contributor[] = []
  readonly #limit: number
  /** The number asked for last: a frame mentions its predictor's maker several times. */
  #lastIndex = -1
  /** The name whose maker was asked for last, and its maker's number. */
  #lastId: PredictorId | undefined
  #lastOrigin = -1

  /** @param limit how many contributors may be met before further ones are refused */
  constructor(limit = 1 << 20) {
    this.#limit = limit
  }

  get size(): number {
    return this.#contributors.length
  }

  /** The contributor's number, a new one if it was never met. Throws FrameError when the table is full. */
  indexOf(origin: string, incarnation: number): number {
    const last = this.#contributors[this.#lastIndex]
    if (last !== undefined && last.origin === origin && last.incarnation === incarnation) return this.#lastIndex
    let incarnations = this.#indices.get(origin)
    let indexOf = incarnations?.get(incarnation)
    if (indexOf === undefined) {
      indexOf = this.#contributors.length
      if (indexOf >= this.#limit) throw new FrameError(`more than ${this.#limit} contributors`)
      if (incarnations === undefined) {
        incarnations = new Map()
        this.#indices.set(origin, incarnations)
      }
      incarnations.set(incarnation, indexOf)
      this.#contributors.push({ origin, incarnation })
    }
    this.#lastIndex = indexOf
    return indexOf
  }

  /** The number of a predictor's maker; −1 for the starting predictor's. */
  indexOfOrigin(id: PredictorId): number {
    if (id !== this.#lastId) {
      this.#lastId = id
      this.#lastOrigin = id.updates > 0 ? this.indexOf(id.origin, id.incarnation) : -1
    }
    return this.#lastOrigin
  }

  contributor(indexOf: number): Contributor {
    const found = this.#contributors[indexOf]
    if (found === undefined) throw new RangeError(`no contributor ${indexOf}`)
    return found
  }
}

/**
 * A contributor of gradients is a node in one of its incarnations. Coverages mention contributors all the time, so each
 * node numbers those it has heard of and coverages hold numbers.
 */
import { FrameError } from './errors.js'
import type { PredictorId } from './predictor-id.js'

/** One node in one incarnation. */
export interface Contributor {
  readonly origin: string
  readonly incarnation: number
}

/** Numbers contributors 0, 1, 2, … in the order in which they were first met. */
export class ContributorTable {
  /** By origin, then by incarnation. */
  readonly #numbers = new Map<string, Map<number, number>>()
  readonly #contributors: Contributor[] = []
  readonly #limit: number
  /** The number asked for last: a frame mentions its predictor's maker several times. */
  #last = -1
  /** The name whose maker was asked for last, and its maker's number. */
  #id: PredictorId | undefined
  #maker = -1

  /** @param limit how many contributors may be met before further ones are refused */
  constructor(limit = 1 << 20) {
    this.#limit = limit
  }

  get size(): number {
    return this.#contributors.length
  }

  /** The contributor's number, a new one if it was never met. Throws FrameError when the table is full. */
  number(origin: string, incarnation: number): number {
    const last = this.#contributors[this.#last]
    if (last !== undefined && last.origin === origin && last.incarnation === incarnation) return this.#last
    let incarnations = this.#numbers.get(origin)
    let number = incarnations?.get(incarnation)
    if (number === undefined) {
      number = this.#contributors.length
      if (number >= this.#limit) throw new FrameError(`more than ${this.#limit} contributors`)
      if (incarnations === undefined) {
        incarnations = new Map()
        this.#numbers.set(origin, incarnations)
      }
      incarnations.set(incarnation, number)
      this.#contributors.push({ origin, incarnation })
    }
    this.#last = number
    return number
  }

  /** The number of a predictor's maker; −1 for the starting predictor's. */
  numberOfMaker(id: PredictorId): number {
    if (id !== this.#id) {
      this.#id = id
      this.#maker = id.updates > 0 ? this.number(id.origin, id.incarnation) : -1
    }
    return this.#maker
  }

  contributor(number: number): Contributor {
    const found = this.#contributors[number]
    if (found === undefined) throw new RangeError(`no contributor ${number}`)
    return found
  }
}

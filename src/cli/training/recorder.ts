/** Keeps a stream in memory, for the optimum in hindsight and for simulations. */

import { RowBuffer } from '../../data/index.js'
import type { Examples } from '../../learning/index.js'
import { UsageError } from '../errors.js'

/** Features of all rows together, at eight bytes each. */
const MOST_FEATURES = 2 ** 27

export class Recorder {
  readonly #data: string
  readonly #rows = new RowBuffer()

  /** @param data the name in errors */
  constructor(data: string) {
    this.#data = data
  }

  /** Copies all rows. @throws UsageError if they have weights, or do not fit into memory */
  append(rows: Examples): void {
    if (rows.weights !== undefined) {
      throw new UsageError(
        `${this.#data} has weights of inputs, which regret and simulations do not take: remove the option weight`
      )
    }
    for (let row = 0; row < rows.size; row++) this.#rows.append(rows, row)
    if (this.#rows.entries > MOST_FEATURES) {
      throw new UsageError(
        `${this.#data} does not fit into memory: its first ${this.#rows.size} inputs have ${this.#rows.entries} features, the limit is ${MOST_FEATURES}: give --limit N`
      )
    }
  }

  /** Rows so far. */
  get size(): number {
    return this.#rows.size
  }

  /** All rows so far; no more may be appended. */
  get examples(): Examples {
    const { size, labels, offsets, indices, values } = this.#rows.view()
    return { size, labels, offsets, indices, values }
  }
}

/**
 * How many rows the learner takes at a time. It handles its messages between two chunks, so a chunk should be short; but each one
 * has a cost of its own, such as loading the weights of a network, so it should not be shorter than a few single rows.
 */

const MOST_ROWS = 128
/** Milliseconds that a chunk takes at most: predictions and frames wait for its end. */
const SHORT_MS = 500
/** The same if single rows take long. */
const LONG_MS = 5000
/** A chunk may take this multiple of the time of a single row, so that its fixed cost is at most a quarter of it. */
const SINGLE_ROWS = 4

export class ChunkSize {
  #rows = 1
  /** Whether the first chunk is over, which includes the initialisation of a network. */
  #isWarm = false
  /** Milliseconds of a chunk of one row: the least so far. */
  #single = Number.POSITIVE_INFINITY

  /** Number of rows of the next chunk. */
  get rows(): number {
    return this.#rows
  }

  /** A chunk of `rows` rows, at least 1, has taken some milliseconds. */
  took(rows: number, milliseconds: number): void {
    if (!this.#isWarm) {
      this.#isWarm = true
      return
    }
    if (rows === 1) this.#single = Math.min(this.#single, milliseconds)
    const longest = Math.max(SHORT_MS, Math.min(LONG_MS, SINGLE_ROWS * this.#single))
    if (milliseconds > longest || rows >= this.#rows) {
      const fitting = Math.min(2 * rows, Math.floor((rows * longest) / milliseconds))
      this.#rows = Math.max(1, Math.min(MOST_ROWS, fitting))
    }
  }
}

/** How many rows the learner takes at a time. It handles its messages between two chunks, and a row of a large network may take a second. */

const MOST_ROWS = 64
/** Milliseconds that a chunk may take: predictions and frames wait for its end. */
const LONGEST_MS = 500

export class ChunkSize {
  #rows = 1

  /** Number of rows of the next chunk. */
  get rows(): number {
    return this.#rows
  }

  /** A chunk of `rows` rows, at least 1, has taken some milliseconds. */
  took(rows: number, milliseconds: number): void {
    if (milliseconds > LONGEST_MS) this.#rows = Math.max(1, Math.floor((rows * LONGEST_MS) / milliseconds))
    else if (rows >= this.#rows && milliseconds < LONGEST_MS / 2) this.#rows = Math.min(MOST_ROWS, 2 * this.#rows)
  }
}

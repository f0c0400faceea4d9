/** How much of a stream has been dealt with, for those who wait for its end. */

export class ReadProgress {
  /** Passes that are over. */
  passes = 0
  /** Rows that have been handed on. */
  rows = 0
  /** Of the pass at hand; undefined where nobody tells. */
  share: number | undefined
  readonly #passes: number
  readonly #rows: number

  /** @param passes, rows after which the stream ends; Infinity if it does not by itself */
  constructor(passes: number, rows: number) {
    this.#passes = passes
    this.#rows = rows
  }

  /** From 0 to 1; undefined where the end is not known. */
  get total(): number | undefined {
    const byRows = Number.isFinite(this.#rows) ? this.rows / Math.max(1, this.#rows) : undefined
    const isTold = this.share !== undefined && Number.isFinite(this.#passes)
    const byPasses = isTold ? (this.passes + (this.share as number)) / this.#passes : undefined
    if (byRows === undefined) return byPasses
    return Math.min(1, Math.max(byRows, byPasses ?? 0))
  }
}

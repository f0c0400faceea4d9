/**
 * What a stream of labelled inputs is to the rest of the program: something that yields batches of examples in order,
 * never more than a bounded amount at a time.
 */
import type { Rows } from './rows.js'

/** How a malformed input was met: `file:line:column: reason`. */
export interface Malformed {
  readonly source: string
  /** 1-based. */
  readonly line: number
  /** 1-based byte column, 0 where the whole line is meant. */
  readonly column: number
  readonly reason: string
}

export interface ExampleStream extends AsyncIterable<Rows> {
  /** Feature count where it is known before reading (IDX, CSV, built-in streams, hashing, `--dimension`), else undefined. Includes the constant feature. */
  readonly dimension: number | undefined
  /** Number of classes where it is known before reading. */
  readonly classes: number | undefined
  /**
   * All features are hashed into 2^hashBits, by an option or a default (VW, names in JSON lines): whoever reads more inputs
   * for the same model must give it. Undefined where that is not so, or not known yet.
   */
  readonly hashBits: number | undefined
  /**
   * CSV: names of the numeric columns by feature number; whoever reads more inputs for the same model must give them as
   * the option `columns`. Undefined for other formats, and while the input has not told.
   */
  readonly columns: readonly string[] | undefined
  /** Inputs skipped as malformed so far. */
  readonly skipped: number
  /** Share of all passes, from 0 to 1, that has been dealt with; undefined where the end is not known. */
  readonly share: number | undefined
}

/**
 * What a stream of labelled inputs is to the rest of the program: something that yields batches of examples in order,
 * never more than a bounded amount at a time.
 */
import type { Examples } from '../learner/types.js'

/** How a malformed input was met: `file:line:column: reason`. */
export interface Malformed {
  readonly source: string
  /** 1-based. */
  readonly line: number
  /** 1-based byte column, 0 where the whole line is meant. */
  readonly column: number
  readonly reason: string
}

export interface ExampleStream extends AsyncIterable<Examples> {
  /** Feature count where it is known before reading (IDX, CSV, built-in streams, hashing, `--dimension`), else undefined. Includes the constant feature. */
  readonly dimension: number | undefined
  /** Number of classes where it is known before reading. */
  readonly classes: number | undefined
  /** Inputs skipped as malformed so far. */
  readonly skipped: number
}

/**
 * What each kind of input gives to `openStream`, which adds passes, shard, shuffle, scaling and limits to it.
 */
import type { Rows } from './rows.js'

export interface Reader {
  readonly dimension: number | undefined
  readonly classes: number | undefined
  readonly hashBits?: number
  readonly columns?: readonly string[]
  readonly skipped: number
  /** Whether `pass` may be called more than once. */
  readonly repeatable: boolean
  /** Reads the input once more from its begin. */
  pass(): AsyncGenerator<Rows>
}

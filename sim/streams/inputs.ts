/** The streams that a scenario can name, and the interface behind all of them. */
import type { Blocks, Examples, ModelName } from '../../src/learner/index.js'

export const STREAMS = ['logistic', 'least-squares', 'sparse', 'file'] as const
export type StreamName = (typeof STREAMS)[number]

export interface Inputs {
  readonly model: ModelName
  /** Number of classes, for softmax. */
  readonly classes?: number
  readonly dimension: number
  /** The minimiser of the expected loss; undefined where it is not known, and then found in hindsight. */
  readonly optimum?: Blocks
  /** Whether inputs are no independent draws from one distribution, as the theorems suppose. Default: they are. */
  readonly varies?: boolean
  /** Features of an input, on average. Default: `dimension`. */
  readonly features?: number
  /** The next input, in arrays that the call after it reuses. */
  next(): Examples
}

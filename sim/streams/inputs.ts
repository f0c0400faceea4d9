/** The streams that a scenario can name, and their common interface. */
import type { Blocks, Examples, ModelName, TargetScale } from '../../src/learner/index.js'

export const streamNames = ['logistic', 'least-squares', 'sparse', 'file'] as const
export type StreamName = (typeof streamNames)[number]

/** The inputs of a run, which nodes draw one by one. */
export interface Inputs {
  readonly model: ModelName
  /** Number of classes, for softmax. */
  readonly classes?: number
  /** Regression: by which the target is standardised. @default not standardised */
  readonly targetScale?: TargetScale
  readonly dimension: number
  /** The minimiser of the expected loss. If undefined, the best predictor is found in hindsight. */
  readonly optimum?: Blocks
  /** Whether inputs are not independent draws from one distribution, as the theorems require. @default false */
  readonly varies?: boolean
  /** Average number of features of an input. @default `dimension` */
  readonly features?: number
  /** The next input, in arrays that the next call overwrites. */
  next(): Examples
}

/** The streams that a scenario can name, and their common interface. */
import type { Blocks, Examples, ModelName, TargetScale } from '../../src/learning/index.js'

export const streamNames = ['logistic', 'least-squares', 'sparse', 'file'] as const
export type StreamName = (typeof streamNames)[number]

/** The model that a stream is for. */
interface StreamModel {
  readonly model: ModelName
  /** Number of classes, for softmax. */
  readonly classes?: number
  /** Regression: by which the target is standardised. Losses are in its own units. @default not standardised */
  readonly targetScale?: TargetScale
  /** Number of features, the constant feature included. */
  readonly dimension: number
}

/** The inputs of a run, which nodes draw one by one. */
export interface Inputs extends StreamModel {
  /** The minimiser of the expected loss. If undefined, the best predictor is found in hindsight. */
  readonly optimum?: Blocks
  /** Whether inputs are not independent draws from one distribution, as the theorems require. @default false */
  readonly varies?: boolean
  /** Average number of features of an input. @default `dimension` */
  readonly features?: number
  /** Other draws from the same distribution; undefined if there is none. */
  fresh?(): Inputs
  /** The next input, in arrays that the next call overwrites. */
  next(): Examples
}

/** Plain data that any number of runs can share. */
export interface RecordedStream extends StreamModel {
  /** At least one row, all labelled. */
  readonly examples: Examples
}

/** Replays recorded inputs in order, and from the start again if a run needs more. */
export function replay({ examples, ...model }: RecordedStream): Inputs {
  const { size, labels, offsets, indices, values } = examples
  let longest = 0
  for (let r = 0; r < size; r++) longest = Math.max(longest, offsets[r + 1] - offsets[r])
  const row = {
    size: 1,
    labels: new Float32Array(1),
    offsets: new Int32Array(2),
    indices: new Int32Array(longest),
    values: new Float32Array(longest)
  }
  let index = 0
  return {
    ...model,
    varies: true,
    features: offsets[size] / size,
    next() {
      const from = offsets[index]
      const length = offsets[index + 1] - from
      for (let i = 0; i < length; i++) {
        row.indices[i] = indices[from + i]
        row.values[i] = values[from + i]
      }
      row.labels[0] = labels[index]
      row.offsets[1] = length
      index = index + 1 < size ? index + 1 : 0
      return row
    }
  }
}

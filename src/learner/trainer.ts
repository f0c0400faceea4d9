/**
 * What the two ways of training in one process have in common: the tally of progressive validation (every input is
 * scored before it is learned from) and what is left at the end.
 */
import { DivergenceError } from '../base/errors.js'
import type { Blocks, Examples, Score } from './types.js'

/** Which predictor serves predictions: the running average, or the newest parameters (better on drifting streams). */
export type PredictWith = 'average' | 'current'

/** Progressive sums: `loss` in nats (or squared-error units) over `inputs` labelled rows, of which `hits` were right. */
export interface Progress extends Score {
  inputs: number
  /** Rows without a label: neither scored nor learned from. */
  unlabelled: number
}

/** The end of a training run. */
export interface Trained {
  /** Features, as given or as found in the data. */
  readonly dimension: number
  readonly parameters: Blocks
  readonly average: Blocks
  /** The rule's state. */
  readonly state: Blocks
  readonly updates: number
}

/** What becomes of inputs that wait for a batch to be full when training ends: a last update, or nothing. */
export type Rest = 'learn' | 'drop'

/** One way of training; how it does it is its own affair, the results agree. */
export interface Engine {
  readonly progress: Progress
  readonly updates: number
  learn(examples: Examples): void
  /** @param rest default `learn`; `drop` after an error */
  finish(rest?: Rest): Trained
}

export function newProgress(): Progress {
  return { inputs: 0, unlabelled: 0, loss: 0, hits: 0 }
}

/** Called once a batch of examples, so that a run that went wrong stops soon. */
export function checkProgress(progress: Progress): void {
  if (Number.isFinite(progress.loss)) return
  throw new DivergenceError(
    `the loss left all bounds within ${progress.inputs} inputs: scale the features (--scale standard) or use a smaller step`
  )
}

/** Bounds of a model that grows with its data. */
export const DEFAULT_PARAMETER_LIMIT = 2 ** 25
export const FIRST_CAPACITY = 1024

/**
 * The interface of the training engines of one process: the sums of progressive validation, in which every input is scored before
 * it is learned, and the result.
 */
import { DivergenceError } from '../base/errors.js'
import { type OutcomeKind, ProgressiveMetrics } from './metrics/index.js'
import type { Blocks, Examples, Score } from './types.js'

/** The predictor that serves predictions: the running average, or the newest parameters (better on drifting streams). */
export type PredictWith = 'average' | 'current'

/**
 * Progressive sums: `loss` in nats (or squared-error units) over `inputs` labelled rows, of which `hits` were predicted correctly,
 * each times the row's weight.
 */
export interface Progress extends Score {
  inputs: number
  /** Number of rows without a label, which are neither scored nor learned. */
  unlabelled: number
  surplus: number
  readonly outcomes?: ProgressiveMetrics
}

/** The result of a training run. */
export interface Trained {
  /** Number of features, as given or as found in the data. */
  readonly dimension: number
  readonly parameters: Blocks
  readonly average: Blocks
  /** The rule's state. */
  readonly state: Blocks
  readonly updates: number
}

/** Whether inputs in an incomplete batch at the end of training make a last update. */
export type Rest = 'learn' | 'drop'

/** A training engine. All engines give the same results. */
export interface Engine {
  readonly progress: Progress
  readonly updates: number
  /** Continues from an earlier result of the same model. Call it before `learn`. */
  resume(from: Trained): void
  learn(examples: Examples): void
  /** Softmax with room for more classes: gives a name the next class number. @returns undefined if there is no room */
  addClass?(name: string): number | undefined
  /** A copy of the current state, without an incomplete batch. */
  snapshot(): Trained
  /** @param rest default `learn`; `drop` after an error */
  finish(rest?: Rest): Trained
}

/** @param kind of the outcomes that the engine sends; undefined if it sends none */
export function newProgress(kind?: OutcomeKind): Progress {
  return { inputs: 0, unlabelled: 0, surplus: 0, loss: 0, hits: 0, outcomes: kind && new ProgressiveMetrics(kind) }
}

/** Called after each batch of examples, so that a diverging run stops early. @throws DivergenceError */
export function checkProgress(progress: Progress): void {
  if (Number.isFinite(progress.loss)) return
  throw new DivergenceError(
    `the loss is not finite after ${progress.inputs} inputs: scale the features (--scale standard) or use a smaller step`
  )
}

/** Default limit, and initial capacity in features, of a model that grows with its data. */
export const DEFAULT_PARAMETER_LIMIT = 2 ** 25
export const INITIAL_CAPACITY = 1024

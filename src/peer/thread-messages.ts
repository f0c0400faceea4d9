/**
 * What the main thread and the learner thread say to each other. Byte arrays are moved, not copied: whoever posts one must
 * not touch it again.
 */
import type { PredictorId } from '../admb/index.js'
import type { Execution } from '../l2l/index.js'
import type { Blocks } from '../learner/index.js'
import type { SavedMoments, StreamOptions } from '../streams/index.js'
import type { LearningSpec } from '../task/learning-spec.js'
import type { HeldPredictor } from '../view/index.js'

export type PredictWith = 'average' | 'current' | 'ahead'

/** Progressive sums over all inputs that a peer has ever scored, across restarts. */
export interface Sums {
  readonly inputs: number
  readonly loss: number
  /** Inputs whose class was predicted; undefined for regression. */
  readonly hits?: number
  /** Which stream was read; undefined for standard input and for none. */
  readonly stream?: string
  /** How many of its rows have been learned. */
  readonly position?: number
}

/** What a run goes on from, beside the predictor. */
export interface SavedProgress extends Sums {
  /** What `scale standard` scales by; undefined without scaling. */
  readonly moments?: SavedMoments
}

/** A predictor in parts, as `AdmbNode.parts` gives them. */
export interface StoredPredictor {
  readonly head: Uint8Array
  readonly blocks: readonly Uint8Array[]
}

/** What a learner thread starts with. */
export interface LearnerInit {
  readonly spec: LearningSpec
  readonly plugins: readonly string[]
  /** How a network is executed. */
  readonly execution: Execution | undefined
  /** This peer's index. */
  readonly self: string
  readonly incarnation: number
  /** T in milliseconds. */
  readonly period: number
  /** S in periods. */
  readonly carry: number
  readonly predictWith: PredictWith
  /** Undefined for a peer that learns only from what is posted to it. */
  readonly stream: StreamOptions | undefined
  /** Inputs a second, undefined for as fast as they come. */
  readonly rate: number | undefined
  /** What an earlier run saved. */
  readonly saved: StoredPredictor | undefined
  readonly progress: SavedProgress | undefined
  /** Whether checkpoints are wanted. */
  readonly durable: boolean
}

export interface LearnerStatus {
  readonly progress: Sums
  readonly predictor: PredictorId
  /** Predictors taken over from others. */
  readonly adopted: number
  /** Own gradients that no batch will use. */
  readonly discarded: number
  /** Inputs that were malformed or did not fit the model. */
  readonly skipped: number
  /** Whether the stream has come to its end. */
  readonly ended: boolean
}

/** A prediction or a learning request: bytes in one of the stream formats. */
export interface InputRequest {
  readonly action: 'predict' | 'learn'
  readonly format: 'libsvm' | 'vw' | 'jsonl'
  readonly body: Uint8Array
}

export interface InputAnswer {
  readonly predictions: readonly { readonly label: number | string; readonly scores: readonly number[] }[]
  readonly predictor: PredictorId
}

/** The predictor that serves predictions, and what else it takes to use it. */
export interface Serving {
  readonly name: PredictorId
  readonly blocks: Blocks
  /** What `scale standard` scales by; undefined without scaling. */
  readonly moments: SavedMoments | undefined
}

export type ToLearner =
  | { readonly kind: 'connect'; readonly edge: number; readonly peer: string }
  | { readonly kind: 'disconnect'; readonly edge: number }
  | { readonly kind: 'frame'; readonly edge: number; readonly bytes: Uint8Array }
  /** What goes ahead of a frame that is still to come. */
  | { readonly kind: 'part'; readonly edge: number; readonly bytes: Uint8Array }
  /** The oldest frame for that edge has been consumed at its other end, or the oldest part has left. */
  | { readonly kind: 'writable'; readonly edge: number }
  /** Somebody announces a predictor. */
  | { readonly kind: 'head'; readonly name: PredictorId; readonly from: string }
  /** A predictor that was asked for with `fetch`. */
  | { readonly kind: 'fetched'; readonly bytes: Uint8Array; readonly from: string }
  | { readonly kind: 'save'; readonly id: number }
  | { readonly kind: 'serve'; readonly id: number }
  | ({ readonly kind: 'request'; readonly id: number } & InputRequest)
  /** The last checkpoint is on the disk. */
  | { readonly kind: 'stored' }
  | { readonly kind: 'stop' }

export type FromLearner =
  | { readonly kind: 'frame'; readonly edge: number; readonly bytes: Uint8Array }
  | { readonly kind: 'consumed'; readonly edge: number }
  | { readonly kind: 'refused'; readonly edge: number; readonly reason: string }
  | { readonly kind: 'head'; readonly name: PredictorId }
  | { readonly kind: 'fetch'; readonly name: PredictorId; readonly from: string }
  | { readonly kind: 'saved'; readonly id: number; readonly bytes: Uint8Array }
  | ({ readonly kind: 'served'; readonly id: number } & Serving)
  | { readonly kind: 'answer'; readonly id: number; readonly answer: InputAnswer }
  | { readonly kind: 'failed-request'; readonly id: number; readonly reason: string }
  /** `trail`: predictors held since the last status. */
  | { readonly kind: 'status'; readonly status: LearnerStatus; readonly trail: readonly HeldPredictor[] }
  | ({ readonly kind: 'checkpoint'; readonly progress: SavedProgress } & StoredPredictor)
  /** Something to tell the user, seldom. */
  | { readonly kind: 'warning'; readonly reason: string }
  /** The stream or the model cannot go on; the thread is at its end. */
  | { readonly kind: 'failed'; readonly name: string; readonly code: string | undefined; readonly reason: string }
  /** Answer to `stop`, the last message. */
  | { readonly kind: 'stopped' }

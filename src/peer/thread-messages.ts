/**
 * The messages between the main thread and the learner thread. Byte arrays are transferred, not copied: the sender must not use
 * them afterwards.
 */
import type { MasterEdge, PredictorId, QuarantinedPredictor, SavedSteps, TrafficBytes } from '../admb/index.js'
import type { Delimiter, SavedMoments, StreamOptions, StreamPosition } from '../data/index.js'
import type { GroupExecution, WorkerInit } from '../l2l/index.js'
import type { Blocks, DriftTest, PredictWith } from '../learning/index.js'
import type { HeaderKey } from '../network/signatures.js'
import type { JournalAppend, NewSteps, StoredJournal } from '../storage/index.js'
import type { LearningSpec } from '../task/learning-spec.js'
import type { HeldPredictor } from '../view/index.js'
import type { InputAnswer } from './answers.js'
import type { StartedDownload } from './downloads.js'

import type { Downloaded, PartsQuery, SentParts } from './predictor-parts.js'
import type { InitialBudget } from './privacy-budget.js'
import type { PeerStatus } from './status.js'
import type { TrustLimits } from './trust.js'

/** The predictor that serves predictions of a peer: the running average, the newest parameters, or the look-ahead average. */
export type PeerPredictWith = PredictWith | 'ahead'

/** Progressive sums over all inputs that a peer has scored, across restarts. */
export interface ProgressSums {
  readonly inputs: number
  /** Sum of their weights, less their number. @default 0 */
  readonly surplus?: number
  readonly loss: number
  /** Number of correctly classified inputs; undefined for regression. */
  readonly hits?: number
  /** Identifies the last stream that can be resumed. */
  readonly stream?: string
  /** Number of its rows that have been read. */
  readonly position?: number
  /** Where they are in its source. */
  readonly place?: StreamPosition
}

/** The state from which a run resumes, besides the predictor. */
export interface SavedProgress extends ProgressSums {
  /** Moments for `scale: 'standard'`; undefined without scaling. */
  readonly moments?: SavedMoments
  /** A run of `admb train` that ended before its stream; undefined after other runs. */
  readonly unfinished?: UnfinishedRun
}

/** Where a run in one process has ended before the end of its stream. */
export interface UnfinishedRun {
  /** Identifies the stream. */
  readonly stream: string
  /** Rows of it that have been read. */
  readonly rows: number
  /** The last of them, which are in no update yet, as the learner takes them. @default none */
  readonly pending?: Readonly<Record<'labels' | 'offsets' | 'indices' | 'values', readonly number[]>> & {
    readonly weights?: readonly number[]
  }
  /**
   * The running average, if the stored predictor contains it in another form, from which it follows up to rounding only: the float32
   * numbers of each block (little-endian), in base64.
   */
  readonly average?: readonly string[]
}

/** An encoded predictor, as returned by `AdmbNode.saveBlocks` and `saveSteps`. */
export interface StoredPredictor {
  readonly head: Uint8Array
  readonly blocks: readonly Uint8Array[]
  /** Steps since, oldest first. @default none */
  readonly steps?: readonly SavedSteps[]
}

/** A stored predictor, whose blocks the learner thread asks for. */
export interface StoredHead extends Omit<StoredPredictor, 'blocks'> {
  /** Number of blocks. */
  readonly count: number
}

/** The blocks of a whole predictor, or where to ask for them. */
export type CheckpointBlocks =
  | { readonly blocks: readonly Uint8Array[] }
  | { readonly checkpoint: number; readonly count: number }

/** What every checkpoint stores. */
export interface CheckpointState extends Omit<NewSteps, 'steps'> {
  readonly progress: SavedProgress
}

/** What a learner thread is started with. */
export interface ThreadInit extends Omit<LearnerInit, 'saved'> {
  /** Number of parameters. */
  readonly parameters: number
  readonly saved: StoredHead | undefined
}

/** What a learner loop is created with. */
export interface LearnerInit {
  readonly spec: LearningSpec
  readonly plugins: readonly string[]
  /** How a network is executed. */
  readonly execution: GroupExecution | undefined
  /** This peer's id. */
  readonly self: string
  /** With which headers are signed; undefined if they are not, for tests. */
  readonly signing?: HeaderKey
  /** What is used of others; undefined if members are trusted. */
  readonly trust?: TrustLimits
  readonly incarnation: number
  readonly nonce: number
  /** T in milliseconds. */
  readonly period: number
  /** Whether sums are sent less often where that delays updates little. @default false */
  readonly adaptsPeriod?: boolean
  /** S in periods. */
  readonly carry: number
  readonly predictWith: PeerPredictWith
  /** Undefined for a peer that learns only from requests. */
  readonly stream: StreamOptions | undefined
  /** Time for which predictions of requests wait for their labels, in milliseconds; undefined if they do not. */
  readonly labelDelay: number | undefined
  /** Limit of inputs per second; undefined for no limit. */
  readonly rate: number | undefined
  /** How rises of the loss are detected; undefined if they are not. */
  readonly drift?: DriftTest
  /** The parameters that the model of a program starts from. The thread takes them, each with its ArrayBuffer. */
  readonly start?: Float32Array[]
  /** State saved by an earlier run. */
  readonly saved: StoredPredictor | undefined
  readonly progress: SavedProgress | undefined
  /** Whether the peer waits for the network before it learns and serves predictions. @default false */
  readonly joins?: boolean
  /** Journal of earlier runs; undefined for a peer without a store, which keeps none and posts no checkpoints. */
  readonly journal: StoredJournal | undefined
  /** Whether the whole journal and lineage are kept for an audit. @default false */
  readonly keepJournal?: boolean
  /** Differential privacy of the inputs. @default none */
  readonly budget?: InitialBudget
}

/** What the learner contributes to the status of its peer. */
export interface LearnerStatus
  extends Pick<
    PeerStatus,
    | 'addedClasses'
    | 'metrics'
    | 'drift'
    | 'predictor'
    | 'batch'
    | 'adopted'
    | 'discarded'
    | 'gradients'
    | 'skipped'
    | 'waitsFor'
    | 'ended'
    | 'residualShare'
    | 'clippedShare'
    | 'privacy'
    | 'devices'
  > {
  readonly progress: ProgressSums
  /** Bytes of the frames sent, by what they carry. */
  readonly traffic: TrafficBytes
  /** A predictor of another peer that waits for signers; undefined if there is none. */
  readonly quarantined?: QuarantinedPredictor
  /** A better predictor of a neighbour that the loss gate has refused; undefined if there is none. */
  readonly refused?: Pick<QuarantinedPredictor, 'id' | 'from'>
  /** Whether the learner waits for the network that the peer joins. */
  readonly joining: boolean
}

/** A request to predict or learn inputs in one of the text formats. */
export interface InputRequest {
  readonly action: 'predict' | 'learn'
  readonly format: 'libsvm' | 'vw' | 'jsonl' | 'csv'
  readonly body: Uint8Array
  /** The separator of CSV, whose first line is the header. @default a comma */
  readonly delimiter?: Delimiter
  /** Identifies the request: a peer does not learn the inputs of a repeated one again. @default it is learned in any case */
  readonly key?: string
}

/** The predictor that serves predictions, with the moments that it needs. */
export interface Serving {
  readonly predictor: PredictorId
  readonly blocks: Blocks
  /** Moments for `scale: 'standard'`; undefined without scaling. */
  readonly moments: SavedMoments | undefined
}

/** What the main thread asks of the learner, by name: what is given, and the result. Both threads follow from it. */
export interface Requests {
  /** Predicts inputs, or learns them. */
  inputs: { given: InputRequest; result: InputAnswer }
  /** The current predictor, encoded for `decodeSaved`. */
  save: { given: object; result: Uint8Array }
  /** The current predictor in blocks, for peers that download it; see `PartServer`. */
  parts: {
    given: { readonly query: PartsQuery; readonly held: PredictorId | undefined }
    result: SentParts | 'held' | undefined
  }
  /** Starts a download of the serving predictor. */
  download: { given: object; result: StartedDownload }
  /** The next bytes of a download; undefined at its end. */
  piece: { given: { readonly download: number }; result: Uint8Array | undefined }
  /** A block of the checkpoint with this number. */
  block: { given: { readonly checkpoint: number; readonly index: number }; result: Uint8Array }
}
export type RequestName = keyof Requests

/** How the learner thread answers each request. Byte arrays of results are transferred. */
export type RequestHandlers = {
  readonly [Name in RequestName]: (
    given: Requests[Name]['given']
  ) => Requests[Name]['result'] | Promise<Requests[Name]['result']>
}

/** What the learner loop is told. */
export type ToLoop =
  | { readonly kind: 'connect'; readonly edge: number; readonly peer: string }
  /** @param hasLeft whether the peer has left the network */
  | { readonly kind: 'disconnect'; readonly edge: number; readonly hasLeft: boolean }
  /** The edge towards the root of the tree. */
  | { readonly kind: 'master'; readonly edge: MasterEdge }
  | { readonly kind: 'frame'; readonly edge: number; readonly bytes: Uint8Array }
  /** A fragment of a frame that is not complete yet, or an announcement of a predictor. */
  | { readonly kind: 'fragment'; readonly edge: number; readonly bytes: Uint8Array }
  /** The edge's oldest pending frame has been consumed by the neighbour, or its oldest pending fragment has been sent. */
  | { readonly kind: 'writable'; readonly edge: number }
  /** A peer announced a predictor. */
  | { readonly kind: 'announced'; readonly predictor: PredictorId; readonly from: string }
  /** The predictor requested with `fetch`. */
  | { readonly kind: 'fetched'; readonly bytes: Uint8Array; readonly from: string }
  /** The fetch has succeeded or failed. */
  | { readonly kind: 'fetch-ended' }
  /** A download has ended. Without a predictor, nobody has delivered it. */
  | { readonly kind: 'downloaded'; readonly predictor: Downloaded | undefined; readonly from: string }
  /** The predictor of the last request for parts is not served any more. */
  | { readonly kind: 'served' }
  /** The peer begins to learn, although it has not joined the network. */
  | { readonly kind: 'begin' }
  /** The oldest checkpoint that was not stored yet is stored, or cannot be stored. */
  | { readonly kind: 'stored' }
  /** A program joins that computes gradients; it sends a message; its connection has ended. */
  | { readonly kind: 'program-joined'; readonly memory: string }
  | { readonly kind: 'program'; readonly message: number; readonly content: Uint8Array }
  | { readonly kind: 'program-lost' }
  /** The rate of the stream from now on, and the number of inputs for each update of the predictor. */
  | { readonly kind: 'pace'; readonly rate: number; readonly perUpdate: number }

export type ToLearner =
  | ToLoop
  | { readonly kind: 'request'; readonly id: number; readonly name: RequestName; readonly given: object }
  | { readonly kind: 'end-download'; readonly download: number }
  /** A device worker of another process has connected, can execute tasks, or has gone. */
  | { readonly kind: 'device-joined'; readonly device: number }
  | { readonly kind: 'device-ready'; readonly worker: number; readonly name: string; readonly from: string }
  | { readonly kind: 'device-lost'; readonly worker: number }
  /** Answer to `get-stored-block`. */
  | { readonly kind: 'stored-block'; readonly bytes: Uint8Array }
  /** @param stores whether checkpoints are stored */
  | { readonly kind: 'stop'; readonly stores: boolean }

/** What the learner tells its peer. */
export type ToPeer =
  | { readonly kind: 'frame'; readonly edge: number; readonly bytes: Uint8Array }
  /** An announcement of a predictor for a neighbour, sent ahead of frames. */
  | { readonly kind: 'announcement'; readonly edge: number; readonly bytes: Uint8Array }
  | { readonly kind: 'consumed'; readonly edge: number }
  | { readonly kind: 'refused'; readonly edge: number; readonly reason: string }
  /** This peer has a proof against a maker. */
  | { readonly kind: 'excluded'; readonly maker: string }
  | { readonly kind: 'announce'; readonly predictor: PredictorId }
  /** @param isLarge whether it is downloaded in parts */
  | { readonly kind: 'fetch'; readonly predictor: PredictorId; readonly from: string; readonly isLarge: boolean }
  /** A neighbour offers a large predictor. */
  | { readonly kind: 'download'; readonly predictor: PredictorId; readonly from: string }
  /** `recent`: predictors held since the last status. */
  | { readonly kind: 'status'; readonly status: LearnerStatus; readonly recent: readonly HeldPredictor[] }
  /** Records that must be durable before any later message has an effect outside of this peer. */
  | ({ readonly kind: 'journal' } & JournalAppend)
  /** A whole predictor: with its blocks, or with their number, and the number of the checkpoint with which `get-block` asks for them. */
  | ({ readonly kind: 'checkpoint'; readonly head: Uint8Array } & CheckpointState & CheckpointBlocks)
  /** The steps since the last checkpoint; undefined if the predictor is the same. */
  | ({ readonly kind: 'checkpoint-steps'; readonly steps: SavedSteps | undefined } & CheckpointState)
  /** A message for the program; or why its connection ends. */
  | { readonly kind: 'to-program'; readonly message: Uint8Array }
  | { readonly kind: 'refuse-program'; readonly reason: string }
  /** A warning for the log, at a limited rate. */
  | { readonly kind: 'warning'; readonly reason: string }
  /** What happened to the stream's source, for the log. */
  | { readonly kind: 'notice'; readonly line: string }

export type FromLearner =
  | ToPeer
  /** What a device worker that has joined is started with; undefined if there is no place for it. */
  | { readonly kind: 'device'; readonly device: number; readonly init: WorkerInit | undefined }
  | { readonly kind: 'answer'; readonly id: number; readonly result: unknown }
  | { readonly kind: 'failed-request'; readonly id: number; readonly reason: string; readonly code?: string }
  /** The thread stops before the end of a request. `learned` is the number of its first inputs that were learned, if it is to learn. */
  | { readonly kind: 'interrupted'; readonly id: number; readonly learned?: number }
  /** While the thread starts: for a block of the stored predictor. */
  | { readonly kind: 'get-stored-block'; readonly index: number }
  /** The stream or the model failed, and the thread ends. */
  | { readonly kind: 'failed'; readonly name: string; readonly code: string | undefined; readonly reason: string }
  /** Answer to `stop`, the last message. */
  | { readonly kind: 'stopped' }

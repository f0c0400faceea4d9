/**
 * State of a node for one neighbour in one edge session: what was sent and acknowledged, which
 * predictor the neighbour holds, and the newest sum received from it. All of it ends with the
 * session.
 */

import type { Sum } from '../../numeric/sums.js'
import { type Coverage, IndexSet } from '../state/coverage.js'
import type { PredictorId } from '../state/predictor-id.js'
import { CoverageDecoder } from '../wire/coverage-decoder.js'
import { CommonCoverageEncoder, CoverageEncoder } from '../wire/coverage-encoder.js'
import type { ExchangedSums } from '../wire/exchanged-sums.js'
import type { Transfer } from '../wire/fragments.js'
import type { ReceivedFrame } from '../wire/frame.js'
import { Backoff } from './backoff.js'

/** Newest sum received from a neighbour for the current predictor. */
export interface NeighbourSum {
  readonly sequence: number
  readonly count: number
  readonly coverage: Coverage
  readonly sum: Sum
}

/** A predictor that a neighbour has announced. */
export interface Announced {
  readonly id: PredictorId
  /** Period in which it was announced or repeated. */
  readonly period: number
  /** Whether the wait for it is over. */
  readonly isWaitOver: boolean
}

/** Last push of the current predictor to a neighbour that lacks it. */
interface Push {
  readonly id: PredictorId
  readonly kind: 'offer' | 'steps' | 'whole'
  readonly sequence: number
  /** Period in which it was sent. */
  readonly period: number
  /** Whether it can be used only if the frames before it arrive. */
  readonly isOptimistic: boolean
  /** Number of steps. */
  readonly steps: number
}

/** Content that the next frame must carry. `FrameSender` clears it when it composes a frame. */
export class DueContent {
  /**
   * Whether a frame must leave as soon as the transport accepts one, because the neighbour may know
   * nothing of this node.
   */
  hello = true
  request = false
  reply = false
  sum = false
  /** Whether a frame must leave for the acknowledgement alone. */
  acknowledgement = false
  /** Whether content has come since the last frame. The next tick makes an acknowledgement due. */
  isContentUnacknowledged = false

  get isAny(): boolean {
    return this.hello || this.request || this.reply || this.sum || this.acknowledgement
  }

  clear(): void {
    this.hello = this.request = this.reply = this.sum = this.acknowledgement = this.isContentUnacknowledged = false
  }
}

/** Predictors sent to and requested from the neighbour. `PushPolicy` owns it. */
export class PushedPredictor {
  last: Push | undefined
  /** Whether the last push must be repeated because it seems lost. */
  isLost = false
  readonly backoff = new Backoff()
  /** The last predictor that was requested from the neighbour. */
  requested: PredictorId | undefined
  readonly requestBackoff = new Backoff()
  /** Whether its last predictor was rejected, so that requests wait for the backoff. */
  isDistrusted = false
  readonly helloBackoff = new Backoff()
  /** The last predictor that both ends held, and its parent, if that is known. */
  lastCommon: PredictorId | undefined
  commonParent: PredictorId | undefined
}

/** Sums sent to the neighbour at the current predictor. `OutgoingSums` owns it. */
export class SentSums {
  /** `OutgoingSums.version` when the last sum was sent. */
  version = -1
  last: { readonly sequence: number; readonly count: number; readonly period: number } | undefined
  readonly backoff = new Backoff()
}

/** The neighbour's newest sum for the current predictor. `NeighbourSums` owns it. */
export class HeldSum {
  sum: NeighbourSum | undefined
  /** Number of changes of `sum`. */
  changes = 0
  /** Number of `decoder.contributors` that `NeighbourSums` has indexed, and their peers. */
  indexed = 0
  readonly peers = new IndexSet()

  replace(sum: NeighbourSum | undefined): void {
    this.sum = sum
    this.changes++
  }
}

/** Predictors announced by the neighbour and to it. `Announcements` owns it. */
export class EdgeAnnouncements {
  received: Announced | undefined
  lastSent: Pick<Announced, 'id' | 'period'> | undefined
  /** Whether its announcements are ignored, because what it announced has not arrived. */
  isUnreliable = false

  /** Ends the wait for the predictor that the neighbour has announced. */
  end(): void {
    if (this.received) this.received = { ...this.received, isWaitOver: true }
  }
}

/**
 * Maximum number of frames in a row that acknowledge too little, from a neighbour that does not
 * count as withholding. A correct neighbour sends none.
 */
const MAX_IGNORING = 3

/** Maximum number of predictors kept of frames on their way, many times more than there are. */
const MAX_SENT_IDS = 1 << 14

export class Edge {
  readonly session: number
  /** Peer id of the neighbour. */
  readonly peer: string
  readonly encoder: CoverageEncoder
  readonly decoder: CoverageDecoder

  readonly due = new DueContent()
  readonly pushed = new PushedPredictor()
  readonly sentSums = new SentSums()
  readonly held = new HeldSum()
  readonly announcements = new EdgeAnnouncements()
  /** Predictor of the neighbour, from its last frame; undefined before its first frame. */
  peerPredictor: PredictorId | undefined
  /** Undefined unless sums are integers. */
  readonly exchanged: ExchangedSums | undefined
  /** The frame that is being sent in fragments; no other frame leaves before it is complete. */
  outgoingTransfer: Transfer | undefined
  /** A frame that waits for missing fragments. */
  deferred: Uint8Array | undefined

  #sent = 0
  /** Predictors of frames since the last acknowledged one: each from this sequence number on. */
  readonly #sentIds: { readonly sequence: number; readonly id: PredictorId }[] = []
  #acknowledged = 0
  /** Highest sequence number known to have arrived. Frames of the neighbour acknowledge it then. */
  #receivedByNeighbour = 0
  /** Number of the neighbour's last frames in a row that acknowledge too little. */
  #ignoring = 0
  /** `#receivedByNeighbour` when the neighbour's last frame arrived. */
  #receivedBefore = 0
  #received = 0
  #roundTrip = 0
  #timed: { readonly sequence: number; readonly period: number } | undefined
  #transferCount = 0
  #deferredSequence = 0

  /** @param dictionary the one that all edges have in common */
  constructor(session: number, peer: string, exchanged?: ExchangedSums, dictionary?: number[]) {
    this.encoder = dictionary === undefined ? new CoverageEncoder() : new CommonCoverageEncoder(dictionary)
    this.decoder = new CoverageDecoder(dictionary)
    this.session = session
    this.peer = peer
    this.exchanged = exchanged
  }

  /** Highest sequence number that the neighbour has acknowledged. */
  get acknowledged(): number {
    return this.#acknowledged
  }

  /** Highest sequence number received. */
  get received(): number {
    return this.#received
  }

  /** Last measured time from a frame to its acknowledgement, in periods. */
  get roundTrip(): number {
    return this.#roundTrip
  }

  /**
   * The transport reports that the neighbour has received frames.
   * @param sequence number of the last one
   * @default all frames so far
   */
  reachedNeighbour(sequence = this.#sent): void {
    this.#receivedByNeighbour = Math.max(this.#receivedByNeighbour, sequence)
  }

  /**
   * Returns the next sequence number and starts timing its acknowledgement unless another one is
   * being timed.
   * @param id predictor of the frame
   */
  nextSequence(period: number, id: PredictorId): number {
    this.#sent++
    if (this.#sentIds.at(-1)?.id !== id) this.#sentIds.push({ sequence: this.#sent, id })
    if (this.#sentIds.length > MAX_SENT_IDS) this.#sentIds.shift()
    if (this.#timed === undefined) this.#timed = { sequence: this.#sent, period }
    return this.#sent
  }

  /** Predictor of a frame that was sent: the last acknowledged one, or a later one. */
  sentId(sequence: number): PredictorId | undefined {
    return sequence > this.#sent ? undefined : this.#sentIds[this.#lastSentBefore(sequence)]?.id
  }

  /** Position of the predictor of this frame; −1 if it is not known any more. */
  #lastSentBefore(sequence: number): number {
    let i = this.#sentIds.length - 1
    while (i >= 0 && this.#sentIds[i].sequence > sequence) i--
    return i
  }

  /** Number of the next transfer (1, 2, 3, …). */
  nextTransfer(): number {
    return ++this.#transferCount
  }

  /** Processes the neighbour's acknowledgement of `sequence`. Earlier frames may have been lost. */
  acknowledge(sequence: number, period: number): void {
    if (sequence <= this.#acknowledged) return
    this.#acknowledged = sequence
    this.encoder.acknowledge(sequence)
    const first = this.#lastSentBefore(sequence)
    if (first > 0) this.#sentIds.splice(0, first)
    if (this.#timed && this.#timed.sequence <= sequence) {
      this.#roundTrip = period - this.#timed.period
      this.#timed = undefined
    }
  }

  /**
   * Whether the neighbour receives frames and uses none of them, given what its next frame
   * acknowledges. A neighbour composes a frame after its previous one has arrived, so it must
   * acknowledge what it had received by then. Frames that it receives later may be reported first,
   * as its frame may wait for its disk or for a slow line.
   */
  isWithheld(received: number): boolean {
    this.#ignoring = received >= this.#receivedBefore ? 0 : this.#ignoring + 1
    this.#receivedBefore = this.#receivedByNeighbour
    return this.#ignoring > MAX_IGNORING
  }

  isCurrent(session: number, sequence: number): boolean {
    return session === this.session && sequence > this.#received && sequence >= this.#deferredSequence
  }

  /** A frame arrived before the last of its fragments. Only the newest such frame is kept. */
  defer(sequence: number, frame: Uint8Array): undefined {
    this.deferred = frame
    this.#deferredSequence = sequence
  }

  /** A frame has been checked. Its content is acknowledged. */
  recordFrame({ sequence, received, id, content, sum, request }: ReceivedFrame, period: number): void {
    this.#received = sequence
    this.acknowledge(received, period)
    this.peerPredictor = id
    const isRepeatedAnnouncement = received === 0 && sequence > 1
    if (content || sum || request || isRepeatedAnnouncement) this.due.isContentUnacknowledged = true
  }

  /** Resets the state that refers to the previous predictor. */
  switchPredictor(id: PredictorId): void {
    this.exchanged?.switchPredictor(id)
    this.due.sum = false
    this.sentSums.version = -1
    this.sentSums.last = undefined
    this.pushed.isLost = false
    this.due.request = false
    this.pushed.requested = undefined
  }
}

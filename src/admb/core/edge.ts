/**
 * State of a node for one neighbour in one edge session: what was sent and acknowledged, which predictor the neighbour
 * holds, and the newest sum received from it. All of it ends with the session.
 */

import type { Blocks } from '../../learner/types.js'
import type { Coverage } from '../state/coverage.js'
import type { PredictorId } from '../state/predictor-id.js'
import { CoverageDecoder } from '../wire/coverage-decoder.js'
import { CoverageEncoder } from '../wire/coverage-encoder.js'
import type { ExchangedSums } from '../wire/exchanged-sums.js'
import type { Transfer } from '../wire/fragments.js'
import type { ReceivedFrame } from '../wire/frame.js'
import { Backoff } from './backoff.js'

/** Newest sum received from a neighbour for the current predictor. */
export interface NeighbourSum {
  readonly sequence: number
  readonly count: number
  readonly coverage: Coverage
  readonly sum: Blocks
}

/** What a neighbour has announced last. */
export interface Announced {
  readonly id: PredictorId
  /** In which it was announced or repeated. */
  readonly period: number
  /** Whether the wait for it is over. */
  readonly isOver: boolean
}

/** Last push of the current predictor to a neighbour that lacks it. */
interface Push {
  readonly id: PredictorId
  readonly kind: 'offer' | 'steps' | 'whole'
  readonly sequence: number
  /** In which it was sent. */
  readonly period: number
  /** Whether it can be used only if the frames before it arrive. */
  readonly isOptimistic: boolean
  /** Number of steps. */
  readonly steps: number
}

/** Frames in a row that acknowledge too little, above which a neighbour counts as withholding. A correct one sends none. */
const MAX_IGNORING = 3

/** Predictors of frames on their way that are kept, many times more than there are. */
const MAX_SENT_IDS = 1 << 14

export class Edge {
  readonly session: number
  /** Peer id of the neighbour. */
  readonly peer: string
  readonly encoder = new CoverageEncoder()
  readonly decoder = new CoverageDecoder()

  /** Number of frames sent. */
  sent = 0
  /** Predictors of the frames sent since the last acknowledged one: each from this sequence number on. */
  readonly #sentIds: { readonly sequence: number; readonly id: PredictorId }[] = []
  /** Highest sequence number that the neighbour has acknowledged. */
  acknowledged = 0
  /** Highest sequence number that the neighbour is known to have taken: each frame that it composes afterwards acknowledges it. */
  taken = 0
  /** Number of its last frames that have not. */
  #ignoring = 0
  /** `taken` when the neighbour's last frame arrived. */
  #takenBefore = 0
  /** Predictor of the neighbour, from its last frame; undefined before its first frame. */
  peerPredictor: PredictorId | undefined
  /** The last predictor that both ends held. */
  lastCommon: PredictorId | undefined
  /** Its parent, if that is known. */
  commonParent: PredictorId | undefined
  push: Push | undefined
  /** Whether the push must be repeated because it seems lost. */
  pushLost = false
  readonly pushBackoff = new Backoff()
  /** What the neighbour has announced, and what has been announced to it. */
  announced: Announced | undefined
  told: Pick<Announced, 'id' | 'period'> | undefined
  /** Whether its announcements are ignored, because what it announced has not arrived. */
  isUnreliable = false
  /** The last predictor that was requested from the neighbour. */
  requested: PredictorId | undefined
  readonly requestBackoff = new Backoff()
  /** Whether the last predictor of the neighbour was rejected: others are requested only when the backoff is over. */
  isDistrusted = false
  /** Whether a frame must leave as soon as the transport accepts one. */
  urgent = true
  readonly announceBackoff = new Backoff()
  requestDue = false
  replyDue = false

  /** Whether the next frame must carry a sum. */
  sumDue = false
  /** `OutgoingSums.version` when the last sum was sent on this edge. */
  sentVersion = -1
  /** The last sum sent at the current predictor. */
  lastSum: { readonly sequence: number; readonly count: number; readonly period: number } | undefined
  readonly sumBackoff = new Backoff()

  /** Highest sequence number received. */
  received = 0
  /** A frame that waits for missing fragments. */
  deferred: Uint8Array | undefined
  /** Whether the neighbour has sent content since the last frame to it. */
  ackPending = false
  /** Whether a frame must leave for the acknowledgement alone. */
  ackDue = false
  neighbourSum: NeighbourSum | undefined
  /** Undefined unless sums are integers. */
  readonly exchanged: ExchangedSums | undefined
  /** Number of changes of `neighbourSum`. */
  sumChanges = 0
  /** Number of `decoder.contributors` that `NeighbourSums` has indexed. */
  indexedContributors = 0
  /** Last measured time from a frame to its acknowledgement, in periods. */
  roundTrip = 0

  /** The frame that is being sent in fragments; no other frame leaves before it is complete. */
  outgoingTransfer: Transfer | undefined
  #transferCount = 0
  #deferredSequence = 0

  #timed: { readonly sequence: number; readonly period: number } | undefined

  constructor(session: number, peer: string, exchanged?: ExchangedSums) {
    this.session = session
    this.peer = peer
    this.exchanged = exchanged
  }

  /**
   * Returns the next sequence number and starts timing its acknowledgement unless another one is being timed.
   * @param id predictor of the frame
   */
  nextSequence(period: number, id: PredictorId): number {
    this.sent++
    if (this.#sentIds.at(-1)?.id !== id) this.#sentIds.push({ sequence: this.sent, id })
    if (this.#sentIds.length > MAX_SENT_IDS) this.#sentIds.shift()
    if (this.#timed === undefined) this.#timed = { sequence: this.sent, period }
    return this.sent
  }

  /** Predictor of a frame that was sent: the last acknowledged one, or a later one. */
  sentId(sequence: number): PredictorId | undefined {
    return sequence > this.sent ? undefined : this.#sentIds[this.#lastSentBefore(sequence)]?.id
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
    if (sequence <= this.acknowledged) return
    this.acknowledged = sequence
    this.encoder.acknowledge(sequence)
    const first = this.#lastSentBefore(sequence)
    if (first > 0) this.#sentIds.splice(0, first)
    if (this.#timed && this.#timed.sequence <= sequence) {
      this.roundTrip = period - this.#timed.period
      this.#timed = undefined
    }
  }

  /**
   * Whether the neighbour takes frames and uses none of them, given what its next frame acknowledges. It composes a frame after its
   * previous one has arrived, so it must acknowledge what it had taken by then. Frames that it takes later may be reported first, as
   * its frame may wait for its disk or for a slow line.
   */
  isWithheld(received: number): boolean {
    this.#ignoring = received >= this.#takenBefore ? 0 : this.#ignoring + 1
    this.#takenBefore = this.taken
    return this.#ignoring > MAX_IGNORING
  }

  isCurrent(session: number, sequence: number): boolean {
    return session === this.session && sequence > this.received && sequence >= this.#deferredSequence
  }

  /** A frame arrived before the last of its fragments. Only the newest such frame is kept. */
  defer(sequence: number, frame: Uint8Array): undefined {
    this.deferred = frame
    this.#deferredSequence = sequence
  }

  /** A frame has been checked. Its content is acknowledged. */
  receive({ sequence, received, id, content, sum, request }: ReceivedFrame, period: number): void {
    this.received = sequence
    this.acknowledge(received, period)
    this.peerPredictor = id
    const isRepeatedAnnouncement = received === 0 && sequence > 1
    if (content || sum || request || isRepeatedAnnouncement) this.ackPending = true
  }

  /** Resets what refers to the previous predictor. */
  switchPredictor(id: PredictorId): void {
    this.exchanged?.switchPredictor(id)
    this.sumDue = false
    this.sentVersion = -1
    this.lastSum = undefined
    this.pushLost = false
    this.requestDue = false
    this.requested = undefined
  }
}

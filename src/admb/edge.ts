/**
 * What a node keeps for one neighbour in one session of the edge between them: what was told either way, what is
 * acknowledged, what the neighbour is known to hold, and the newest sum received from it. All of it ends with the session.
 */
import type { Blocks } from '../learner/types.js'
import type { Coverage } from './coverage.js'
import { CoverageDecoder } from './coverage-decoder.js'
import { CoverageEncoder } from './coverage-encoder.js'
import type { PredictorId } from './predictor-id.js'
import type { Transfer } from './transfer.js'

/** A neighbour's gradients for the predictor held now. */
export interface NeighbourSum {
  readonly sequence: number
  readonly count: number
  readonly coverage: Coverage
  readonly sum: Blocks
}

/** What was last done about a neighbour that lacks the predictor held now. */
interface Push {
  readonly id: PredictorId
  readonly kind: 'offer' | 'step' | 'whole'
  readonly sequence: number
}

const MIN_WAIT = 4
const MAX_WAIT = 64

/** Repeats after growing waits, in periods, without an answer: at first a little over a round trip, then twice as long each time. */
export class Backoff {
  #since = 0
  #wait = MIN_WAIT

  /** @param roundTrip periods that an answer is known to take */
  start(period: number, roundTrip: number): void {
    this.#since = period
    this.#wait = MIN_WAIT + 2 * roundTrip
  }

  due(period: number): boolean {
    return period - this.#since >= this.#wait
  }

  advance(period: number): void {
    this.#since = period
    this.#wait = Math.max(this.#wait, Math.min(MAX_WAIT, this.#wait * 2))
  }
}

export class Edge {
  readonly session: number
  /** The neighbour's index. */
  readonly peer: string
  readonly encoder = new CoverageEncoder()
  readonly decoder = new CoverageDecoder()

  /** Frames sent so far. */
  sent = 0
  /** Highest own sequence number that the neighbour has received. */
  acknowledged = 0
  /** The neighbour's predictor as it last said; undefined before its first frame. */
  peerPredictor: PredictorId | undefined
  /** The last predictor that both ends held at some time. */
  lastCommon: PredictorId | undefined
  push: Push | undefined
  /** Whether the push seems lost. */
  pushLost = false
  readonly pushBackoff = new Backoff()
  /** The name for which the neighbour was last asked. */
  requested: PredictorId | undefined
  readonly requestBackoff = new Backoff()
  /** Whether a frame should leave as soon as the transport takes one. */
  urgent = true
  readonly announceBackoff = new Backoff()
  requestDue = false
  replyDue = false

  /** Whether a sum should go with the next frame. */
  sumDue = false
  /** State of the node's sums when the last one was sent here. */
  sentVersion = -1
  lastSum: { readonly sequence: number; readonly empty: boolean } | undefined
  readonly sumBackoff = new Backoff()

  /** Highest sequence number received. */
  received = 0
  /** A frame that waits for parts. */
  deferred: Uint8Array | undefined
  /** Whether the neighbour has sent content since the last frame to it. */
  ackPending = false
  /** Whether a frame should leave for the acknowledgement alone. */
  ackDue = false
  neighbourSum: NeighbourSum | undefined
  /** How often the held sum has changed. */
  sumChanges = 0
  /** How many of the contributors of its sums the node's sums have taken notice of. */
  indexedContributors = 0
  /** Periods from a frame to its acknowledgement, as last measured. */
  roundTrip = 0

  /** The frame that is on its way in parts, before which nothing else leaves. */
  outgoingTransfer: Transfer | undefined
  #transferCount = 0
  #deferredSequence = 0

  #timed: { readonly sequence: number; readonly period: number } | undefined

  constructor(session: number, peer: string) {
    this.session = session
    this.peer = peer
  }

  /** A frame is about to leave: starts timing its acknowledgement, unless another is being timed. */
  nextSequence(period: number): number {
    this.sent++
    if (this.#timed === undefined) this.#timed = { sequence: this.sent, period }
    return this.sent
  }

  /** Number of the next transfer. */
  nextTransfer(): number {
    return ++this.#transferCount
  }

  /** The neighbour says that this is the newest frame it received. Older ones may have been lost. */
  acknowledge(sequence: number, period: number): void {
    if (sequence <= this.acknowledged) return
    this.acknowledged = sequence
    this.encoder.acknowledge(sequence)
    if (this.#timed && this.#timed.sequence <= sequence) {
      this.roundTrip = period - this.#timed.period
      this.#timed = undefined
    }
  }

  isCurrent(session: number, sequence: number): boolean {
    return session === this.session && sequence > this.received && sequence >= this.#deferredSequence
  }

  /** A frame came before the last of its parts. The newest one waits. */
  defer(sequence: number, frame: Uint8Array): undefined {
    this.deferred = frame
    this.#deferredSequence = sequence
  }

  /** A new epoch at this end: sums of the old one mean nothing any more. */
  switchPredictor(): void {
    this.sumDue = false
    this.sentVersion = -1
    this.lastSum = undefined
    this.pushLost = false
    this.replyDue = false
    this.requestDue = false
    this.requested = undefined
  }
}

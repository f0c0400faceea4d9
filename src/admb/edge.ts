/**
 * What a node keeps for one neighbour in one session of the edge between them: what was sent and acknowledged, what the
 * neighbour is known to hold, and the newest sum received from it. All of it ends with the session.
 */
import type { Blocks } from '../learner/types.js'
import type { Incoming, Outgoing } from './codec.js'
import { type Coverage, EMPTY } from './coverage.js'
import type { PredictorName } from './name.js'

/** A neighbour's gradients for the predictor held now. */
export interface HeldSum {
  readonly sequence: number
  readonly count: number
  readonly coverage: Coverage
  readonly sum: Blocks
}

/** What was last done about a neighbour that lacks the predictor held now. */
interface Push {
  readonly name: PredictorName
  readonly kind: 'offer' | 'step' | 'whole'
  readonly sequence: number
}

const LEAST_WAIT = 4
const GREATEST_WAIT = 64

/** Repeats after growing waits, in periods, without an answer: at first a little over a round trip, then twice as long each time. */
export class Backoff {
  #since = 0
  #wait = LEAST_WAIT

  /** @param roundTrip periods that an answer is known to take */
  start(period: number, roundTrip: number): void {
    this.#since = period
    this.#wait = LEAST_WAIT + 2 * roundTrip
  }

  due(period: number): boolean {
    return period - this.#since >= this.#wait
  }

  again(period: number): void {
    this.#since = period
    this.#wait = Math.max(this.#wait, Math.min(GREATEST_WAIT, this.#wait * 2))
  }
}

/** How many coverages of received sums are kept as bases for later changes. */
const BASES = 64

export class Edge implements Outgoing, Incoming {
  readonly session: number
  /** The neighbour's index. */
  readonly peer: string

  /** Frames sent so far. */
  sent = 0
  /** Highest own sequence number that the neighbour has received. */
  acknowledged = 0
  /** The neighbour's predictor as it last said; undefined before its first frame. */
  peerHolds: PredictorName | undefined
  push: Push | undefined
  /** Whether the push seems lost. */
  repush = false
  readonly pushBackoff = new Backoff()
  /** The name for which the neighbour was last asked. */
  asked: PredictorName | undefined
  readonly askBackoff = new Backoff()
  /** Whether a frame should leave as soon as the transport takes one. */
  urgent = true
  readonly greetBackoff = new Backoff()
  ask = false
  answer = false

  /** Whether a sum should go with the next frame. */
  sumDue = false
  /** State of the node's sums when the last one was sent here. */
  sentVersion = -1
  lastSum: { readonly sequence: number; readonly name: PredictorName; readonly empty: boolean } | undefined
  readonly sumBackoff = new Backoff()
  /** The sum that the neighbour holds, as it last said, with its coverage. */
  sumAcknowledged = 0

  /** Highest sequence number received. */
  received = 0
  /** Whether the neighbour has sent content since the last frame to it. */
  owesAck = false
  /** Whether a frame should leave for the acknowledgement alone. */
  ackDue = false
  held: HeldSum | undefined
  /** How often the held sum has changed. */
  changes = 0

  /** Periods from a frame to its acknowledgement, as last measured. */
  roundTrip = 0

  #timed: { readonly sequence: number; readonly period: number } | undefined
  /** Contributors that the neighbour knows by number. */
  readonly #known = new Set<number>()
  /** Contributors defined in frames of which it is not known whether they arrived. */
  readonly #unconfirmed = new Map<number, Set<number>>()
  readonly #theirs = new Map<number, number>()
  readonly #sentCoverages = new Map<number, Coverage>()
  readonly #receivedCoverages = new Map<number, Coverage>()

  constructor(session: number, peer: string) {
    this.session = session
    this.peer = peer
  }

  undefined(contributor: number): boolean {
    if (this.#known.has(contributor)) return false
    const defined = this.#unconfirmed.get(this.sent)
    if (defined?.has(contributor)) return false
    if (defined) defined.add(contributor)
    else this.#unconfirmed.set(this.sent, new Set([contributor]))
    return true
  }

  /** A frame is about to leave: starts timing its acknowledgement, unless another is being timed. */
  nextSequence(period: number): number {
    this.sent++
    if (this.#timed === undefined) this.#timed = { sequence: this.sent, period }
    return this.sent
  }

  /** The neighbour says that this is the newest frame it received. Older ones may have been lost. */
  confirm(sequence: number, period: number): void {
    if (sequence <= this.acknowledged) return
    this.acknowledged = sequence
    for (const contributor of this.#unconfirmed.get(sequence) ?? []) this.#known.add(contributor)
    for (const older of this.#unconfirmed.keys()) {
      if (older > sequence) break
      this.#unconfirmed.delete(older)
    }
    if (this.#timed && this.#timed.sequence <= sequence) {
      this.roundTrip = period - this.#timed.period
      this.#timed = undefined
    }
  }

  define(theirs: number, own: number): void {
    this.#theirs.set(theirs, own)
  }

  translate(theirs: number): number | undefined {
    return this.#theirs.get(theirs)
  }

  /** The base for the next sum's changes: the last acknowledged sum of this epoch. */
  base(): { readonly sequence: number; readonly coverage: Coverage } {
    const coverage = this.#sentCoverages.get(this.sumAcknowledged)
    return coverage === undefined ? { sequence: 0, coverage: EMPTY } : { sequence: this.sumAcknowledged, coverage }
  }

  noteSent(sequence: number, coverage: Coverage): void {
    this.#sentCoverages.set(sequence, coverage)
    if (this.#sentCoverages.size > BASES) this.#sentCoverages.delete(this.#sentCoverages.keys().next().value as number)
  }

  noteSumAcknowledged(sequence: number): void {
    this.sumAcknowledged = sequence
    for (const older of this.#sentCoverages.keys()) {
      if (older >= sequence) break
      this.#sentCoverages.delete(older)
    }
  }

  noteReceived(sequence: number, coverage: Coverage, base: number): void {
    for (const older of this.#receivedCoverages.keys()) {
      if (older >= base) break
      this.#receivedCoverages.delete(older)
    }
    this.#receivedCoverages.set(sequence, coverage)
    if (this.#receivedCoverages.size > BASES) {
      this.#receivedCoverages.delete(this.#receivedCoverages.keys().next().value as number)
    }
  }

  receivedCoverage(sequence: number): Coverage | undefined {
    return sequence === 0 ? EMPTY : this.#receivedCoverages.get(sequence)
  }

  /** A new epoch at this end: sums of the old one mean nothing any more. */
  turn(): void {
    if (this.held !== undefined) this.changes++
    this.held = undefined
    this.sumDue = false
    this.sentVersion = -1
    this.lastSum = undefined
    this.repush = false
    this.answer = false
    this.ask = false
    this.asked = undefined
  }
}

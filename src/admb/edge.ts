/**
 * What a node keeps for one neighbour in one session of the edge between them: what was sent and acknowledged, what the
 * neighbour is known to hold, and the newest sum received from it. All of it ends with the session.
 */
import type { Blocks } from '../learner/types.js'
import type { Coverage } from './coverage.js'
import { FrameError } from './errors.js'
import type { Incoming, Outgoing } from './frame.js'
import type { PredictorName } from './name.js'
import { Recent } from './recent.js'

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

const NO_BASE = { sequence: 0, parts: [] }

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
  /** Contributors of the sums received, in the order in which they were first mentioned; shared by their coverages. */
  contributors: number[] = []
  /** How many of them the node's sums have taken notice of. */
  listed = 0
  /** The name in the last frame, and the bytes of its digest: most frames repeat it. */
  lastName: PredictorName | undefined
  readonly lastDigest = new Uint8Array(16)

  /** Periods from a frame to its acknowledgement, as last measured. */
  roundTrip = 0

  #timed: { readonly sequence: number; readonly period: number } | undefined
  /** Contributors that the neighbour knows by number. */
  readonly #known: boolean[] = []
  /** Contributors defined in frames of which it is not known whether they arrived. */
  readonly #unconfirmed = new Map<number, Set<number>>()
  /** Own numbers of contributors by the neighbour's. */
  readonly #theirs: number[] = []
  /** Places in `contributors` by the neighbour's numbers. */
  #places: number[] = []
  readonly #placesByOwn = new Map<number, number>()
  readonly #sent = new Recent<readonly Coverage[]>(BASES)
  readonly #received = new Recent<Coverage>(BASES)

  constructor(session: number, peer: string) {
    this.session = session
    this.peer = peer
  }

  undefined(contributor: number): boolean {
    if (this.#known[contributor]) return false
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
    for (const contributor of this.#unconfirmed.get(sequence) ?? []) this.#known[contributor] = true
    for (const older of this.#unconfirmed.keys()) {
      if (older > sequence) break
      this.#unconfirmed.delete(older)
    }
    if (this.#timed && this.#timed.sequence <= sequence) {
      this.roundTrip = period - this.#timed.period
      this.#timed = undefined
    }
  }

  isCurrent(session: number, sequence: number): boolean {
    return session === this.session && sequence > this.received
  }

  define(theirs: number, own: number): void {
    if (this.#theirs[theirs] === own) return
    this.#theirs[theirs] = own
    this.#places[theirs] = this.#placesByOwn.get(own) ?? -1
  }

  translate(theirs: number): number | undefined {
    return this.#theirs[theirs]
  }

  place(theirs: number): number {
    const known = this.#places[theirs]
    if (known >= 0) return known
    const own = this.#theirs[theirs]
    if (own === undefined) throw new FrameError(`contributor ${theirs} was never defined`)
    const place = this.#placeOf(own)
    this.#places[theirs] = place
    return place
  }

  /** Starts the list of contributors anew; coverages received so far keep the old one. */
  renewList(): void {
    this.contributors = []
    this.#places = []
    this.#placesByOwn.clear()
  }

  segments(sequence: number): number[] | undefined {
    if (sequence === 0) return []
    const coverage = this.#received.get(sequence)
    if (coverage === undefined) return undefined
    if (coverage.contributors === this.contributors) return coverage.segments.slice()
    const segments: number[] = []
    coverage.segments.forEach((covered, i) => {
      if (covered === 0) return
      const place = this.#placeOf(coverage.contributors[i])
      while (segments.length < place) segments.push(0)
      segments[place] = covered
    })
    return segments
  }

  #placeOf(own: number): number {
    let place = this.#placesByOwn.get(own)
    if (place === undefined) {
      place = this.contributors.push(own) - 1
      this.#placesByOwn.set(own, place)
    }
    return place
  }

  /** The base for the next sum's changes: the last acknowledged sum of this epoch. */
  base(): { readonly sequence: number; readonly parts: readonly Coverage[] } {
    const parts = this.#sent.get(this.sumAcknowledged)
    return parts === undefined ? NO_BASE : { sequence: this.sumAcknowledged, parts }
  }

  noteSent(sequence: number, parts: readonly Coverage[]): void {
    this.#sent.add(sequence, parts)
  }

  noteSumAcknowledged(sequence: number): void {
    this.sumAcknowledged = sequence
    this.#sent.dropBefore(sequence)
  }

  noteReceived(sequence: number, coverage: Coverage, base: number): void {
    this.#received.dropBefore(base)
    this.#received.add(sequence, coverage)
  }

  /** A new epoch at this end: sums of the old one mean nothing any more. */
  turn(): void {
    this.sumDue = false
    this.sentVersion = -1
    this.lastSum = undefined
    this.repush = false
    this.answer = false
    this.ask = false
    this.asked = undefined
  }
}

/**
 * Announcements of predictors ahead of their content. On a slow line a large predictor, or the step
 * to it, is long on its way. Meanwhile other nodes would fill a batch of their own, and compute a
 * rival that loses. Therefore a node announces a predictor at once, in a short message that
 * overtakes frames, and passes on the announcements of its neighbours. A node that knows of a
 * better predictor sends no sums for its current one, and waits with its own update. A node also
 * waits until its neighbours have received the current predictor, so that updates follow one
 * another no faster than lines carry them.
 *
 * An announcement has no other effect, and what it promises may never arrive. It is therefore
 * repeated while it holds, and ignored after a time without repetition. A node with several times
 * the gradients of a batch waits for nothing. After that it ignores the announcements of this
 * neighbour until the neighbour has delivered a predictor.
 */
import { compareIds, type PredictorId, sameId } from '../state/predictor-id.js'
import { FLAGS } from '../wire/frame.js'
import { beginMessage, type OutgoingMessage, openMessage, readFullId, writeFullId } from '../wire/messages.js'
import type { CurrentPredictor } from './current-predictor.js'
import type { Announced, Edge, EdgeAnnouncements } from './edge.js'
import type { PushPolicy } from './push-policy.js'

/** Periods after which an announcement is repeated. */
const REPEAT_PERIODS = 32
/** Periods without a repetition after which a node no longer waits for an announced predictor. */
export const WAIT_PERIODS = 128
/** Periods after which an unacknowledged predictor no longer holds sums back. */
export const PUSH_PERIODS = 1024

export class Announcements {
  readonly #edges: ReadonlyMap<number, Edge>
  readonly #current: CurrentPredictor
  readonly #push: PushPolicy
  #period = 0

  constructor(edges: ReadonlyMap<number, Edge>, current: CurrentPredictor, push: PushPolicy) {
    this.#edges = edges
    this.#current = current
    this.#push = push
  }

  /** Whether a neighbour has announced a better predictor, or has not received the current one. */
  get isWaiting(): boolean {
    if (this.expected !== undefined) return true
    for (const edge of this.#edges.values()) if (this.#push.isBehind(edge)) return true
    return false
  }

  /**
   * Whether sums must not be sent: those for the current predictor are of no use if there is a
   * better one, and they slow down the predictor on its way to a neighbour, because edges share the
   * line.
   */
  get holdsSums(): boolean {
    if (this.expected !== undefined) return true
    for (const edge of this.#edges.values()) {
      if (this.#push.isOnItsWay(edge, this.#period, PUSH_PERIODS)) return true
    }
    return false
  }

  /** The best predictor that a neighbour has announced, if it is better than the current one. */
  get expected(): PredictorId | undefined {
    let best: PredictorId | undefined
    for (const { announcements } of this.#edges.values()) {
      const announced = announcements.received
      if (announced === undefined || announced.isWaitOver || this.#current.compare(announced.id) <= 0) continue
      if (best === undefined || compareIds(announced.id, best) > 0) best = announced.id
    }
    return best
  }

  /** A period has passed. @returns whether the node waits no longer for an announced predictor */
  tick(period: number): boolean {
    this.#period = period
    let isAnyOver = false
    for (const edge of this.#edges.values()) {
      const announced = edge.announcements.received
      if (announced === undefined || announced.isWaitOver || period - announced.period <= WAIT_PERIODS) continue
      this.#ignore(edge.announcements, announced)
      isAnyOver = true
    }
    return isAnyOver
  }

  /**
   * Reads an announcement.
   * @returns whether it is better than the neighbour's earlier one
   * @throws FrameError
   */
  receiveAnnouncement(edge: Edge, bytes: Uint8Array): boolean {
    const id = decode(bytes, edge.session)
    if (id === undefined) return false
    // An earlier announcement may arrive again.
    const { received: announced, isUnreliable } = edge.announcements
    const comparison = announced === undefined ? 1 : compareIds(id, announced.id)
    if (comparison > 0 || (comparison === 0 && !announced?.isWaitOver))
      edge.announcements.received = { id, period: this.#period, isWaitOver: isUnreliable }
    return comparison > 0 && !isUnreliable
  }

  /** The neighbour has delivered a predictor. */
  delivered(edge: Edge): void {
    edge.announcements.isUnreliable = false
  }

  /** The neighbour has delivered a predictor that this node does not adopt. */
  refused(edge: Edge): void {
    edge.announcements.end()
    edge.announcements.isUnreliable = true
  }

  /** Ends the wait for announced predictors. */
  giveUp(): void {
    for (const { announcements } of this.#edges.values())
      if (announcements.received?.isWaitOver === false) this.#ignore(announcements, announcements.received)
  }

  #ignore(announcements: EdgeAnnouncements, announced: Announced): void {
    announcements.end()
    // A predictor that is no longer better has been delivered, by this neighbour or another one.
    if (this.#current.compare(announced.id) > 0) announcements.isUnreliable = true
  }

  /** Announcements of the best known predictor to neighbours that may not know it, repeated. */
  *due(): Generator<OutgoingMessage> {
    const best = this.expected ?? this.#current.predictor.id
    for (const [number, edge] of this.#edges) {
      const { peerPredictor, announcements } = edge
      const { received: announced, lastSent } = announcements
      if (peerPredictor === undefined || compareIds(peerPredictor, best) >= 0) continue
      if (announced && compareIds(announced.id, best) >= 0) continue
      if (lastSent && sameId(lastSent.id, best) && this.#period - lastSent.period < REPEAT_PERIODS) continue
      announcements.lastSent = { id: best, period: this.#period }
      yield { edge: number, bytes: encode(edge.session, best) }
    }
  }
}

/** Whether the bytes are an announcement. The result is arbitrary for malformed bytes. */
export function isAnnouncement(bytes: Uint8Array): boolean {
  return bytes[1] === FLAGS.announcement
}

function encode(session: number, id: PredictorId): Uint8Array {
  const out = beginMessage(FLAGS.announcement, session)
  writeFullId(out, id)
  return out.finish()
}

/** @returns undefined if it belongs to another session @throws FrameError */
function decode(bytes: Uint8Array, session: number): PredictorId | undefined {
  const input = openMessage(bytes)
  const ofSession = input.uint()
  const id = readFullId(input)
  input.finish()
  return ofSession === session ? id : undefined
}

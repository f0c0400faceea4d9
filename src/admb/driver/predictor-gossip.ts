/**
 * Gossip about predictors: which predictors this peer announces, and which announced predictor it
 * fetches because the tree did not deliver it in time. In this way late joiners, and one side of a
 * healed partition, receive the current predictor.
 */
import { compareIds, type PredictorId, sameId } from '../state/predictor-id.js'

/** Minimum time between two announcements, in milliseconds. */
const ANNOUNCE_MS = 1000
/** Time for the tree to deliver an announced predictor before it is fetched, in milliseconds. */
const FETCH_AFTER_MS = 1000
/** Maximum of the random addition to that time, so that not all peers fetch at once. */
const FETCH_JITTER_MS = 1000

/** A predictor that gossip has announced. */
export interface AnnouncedPredictor {
  readonly predictor: PredictorId
  /** The peer that announced it, and therefore holds it. */
  readonly from: string
}

/** Time for a neighbour that holds the predictor to deliver it, in milliseconds. */
const EXPECTED_MS = 10_000

interface Received extends AnnouncedPredictor {
  readonly dueAt: number
}

/** Decides which predictors are announced by gossip, and which are fetched outside the tree. */
export class PredictorGossip {
  readonly #self: string
  readonly #random: () => number
  #announced: PredictorId | undefined
  #announcedAt = Number.NEGATIVE_INFINITY
  /** The announced predictor that the tree may still deliver. */
  #awaited: Received | undefined
  /** The best announced predictor. */
  #best: Received | undefined
  #isFetching = false

  /** @param random uniform in [0, 1) */
  constructor(self: string, random: () => number) {
    this.#self = self
    this.#random = random
  }

  /** Whether to announce the current predictor now. If so, it counts as announced. */
  shouldAnnounce(current: PredictorId, now: number): boolean {
    if (now - this.#announcedAt < ANNOUNCE_MS) return false
    // Only its origin announces a predictor: announcements by every peer would flood a large
    // network.
    if (current.origin !== this.#self || (this.#announced && sameId(current, this.#announced))) return false
    this.#announced = current
    this.#announcedAt = now
    return true
  }

  /** Handles the announcement of a predictor that is better than the current one. */
  receive({ predictor, from }: AnnouncedPredictor, now: number): void {
    if (this.#best && compareIds(predictor, this.#best.predictor) <= 0) return
    this.#best = { predictor, from, dueAt: now + FETCH_AFTER_MS + FETCH_JITTER_MS * this.#random() }
    this.#awaited ??= this.#best
  }

  /**
   * The best announced predictor, if the tree has not delivered an earlier announced one in time.
   * The fetch counts as running until `fetchEnded`.
   * @param isBetter whether a predictor is better than the current one
   * @param isExpected whether a tree neighbour holds it or a better one
   */
  takeDue(
    now: number,
    isBetter: (id: PredictorId) => boolean,
    isExpected: (id: PredictorId) => boolean
  ): AnnouncedPredictor | undefined {
    // A tree that delivers late still delivers: each predictor that arrives moves the wait to a
    // later one.
    if (this.#awaited && !isBetter(this.#awaited.predictor)) this.#awaited = this.#best
    if (this.#awaited && !isBetter(this.#awaited.predictor)) this.#awaited = this.#best = undefined
    if (this.#isFetching || this.#awaited === undefined || now < this.#awaited.dueAt) return undefined
    if (now < this.#awaited.dueAt + EXPECTED_MS && isExpected(this.#awaited.predictor)) return undefined
    const due = this.#best
    this.#awaited = this.#best = undefined
    this.#isFetching = due !== undefined
    return due && { predictor: due.predictor, from: due.from }
  }

  /** A fetch succeeded or failed, so that the next one may start. */
  fetchEnded(): void {
    this.#isFetching = false
  }
}

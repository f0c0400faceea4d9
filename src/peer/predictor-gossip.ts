/**
 * Gossip about predictors: which predictors this peer announces, and which announced predictor it fetches because the tree did
 * not deliver it in time. In this way late joiners, and one side of a healed partition, receive the current predictor.
 */
import { compareIds, type PredictorId, sameId } from '../admb/index.js'

/** Minimum time between two announcements, in milliseconds. */
const ANNOUNCE_MS = 1000
/** Time for the tree to deliver an announced predictor before it is fetched, in milliseconds. */
const FETCH_AFTER_MS = 1000

export interface AnnouncedPredictor {
  readonly predictor: PredictorId
  /** The peer that announced it, and therefore holds it. */
  readonly from: string
}

export class PredictorGossip {
  readonly #self: string
  #announced: PredictorId | undefined
  #announcedAt = Number.NEGATIVE_INFINITY
  #received: (AnnouncedPredictor & { readonly at: number }) | undefined

  constructor(self: string) {
    this.#self = self
  }

  /** Whether to announce the current predictor now. If so, it counts as announced. */
  shouldAnnounce(current: PredictorId, now: number): boolean {
    if (now - this.#announcedAt < ANNOUNCE_MS) return false
    // Only its origin announces a predictor: announcements by every peer would flood a large network.
    if (current.origin !== this.#self || (this.#announced && sameId(current, this.#announced))) return false
    this.#announced = current
    this.#announcedAt = now
    return true
  }

  /** Handles the announcement of a predictor that is better than the current one. */
  receive({ predictor, from }: AnnouncedPredictor, now: number): void {
    if (this.#received && compareIds(predictor, this.#received.predictor) <= 0) return
    this.#received = { predictor, from, at: this.#received?.at ?? now }
  }

  /** The predictor to fetch now, if it is still better than the current one. Returned once. */
  takeDue(now: number): AnnouncedPredictor | undefined {
    if (this.#received === undefined || now - this.#received.at < FETCH_AFTER_MS) return undefined
    const { predictor, from } = this.#received
    this.#received = undefined
    return { predictor, from }
  }
}

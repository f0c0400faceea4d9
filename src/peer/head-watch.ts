/**
 * Gossip about predictors: what this peer announces of its own, and what it has heard of others' and not yet got through
 * the tree. A late joiner, or one side of a healed partition, then fetches it from whoever has it.
 */
import { compareIds, type PredictorId, sameId } from '../admb/index.js'

/** Least time between two announcements, in milliseconds. */
const ANNOUNCE_MS = 1000
/** How long the tree may take to bring a predictor that gossip has announced, in milliseconds. */
const FETCH_AFTER_MS = 1000

export interface HeardHead {
  readonly name: PredictorId
  /** Who announced it, and so has it. */
  readonly from: string
}

export class HeadWatch {
  readonly #self: string
  #announced: PredictorId | undefined
  #announcedAt = Number.NEGATIVE_INFINITY
  #heard: (HeardHead & { readonly at: number }) | undefined

  constructor(self: string) {
    this.#self = self
  }

  /** Whether to announce the predictor held. Counts as done if so. */
  announces(id: PredictorId, now: number): boolean {
    if (now - this.#announcedAt < ANNOUNCE_MS) return false
    // Only its maker announces a predictor: one voice each is enough, and everyone's would flood a large network.
    if (id.origin !== this.#self || (this.#announced && sameId(id, this.#announced))) return false
    this.#announced = id
    this.#announcedAt = now
    return true
  }

  /** A better predictor than the one held is announced. */
  hear({ name: id, from }: HeardHead, now: number): void {
    if (this.#heard && compareIds(id, this.#heard.name) <= 0) return
    this.#heard = { name: id, from, at: this.#heard?.at ?? now }
  }

  /** What to fetch now, if it is still wanted. Given once. */
  due(now: number): HeardHead | undefined {
    if (this.#heard === undefined || now - this.#heard.at < FETCH_AFTER_MS) return undefined
    const { name: id, from } = this.#heard
    this.#heard = undefined
    return { name: id, from }
  }
}

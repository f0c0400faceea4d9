/**
 * The requests that a peer has sent or forwarded over the tree and that may still be answered. Their number and rate are bounded,
 * because a search reaches every peer.
 */

/** Requests that a peer answers or forwards: mean interval in ms, and burst. */
const ASK_MS = 250
const ASK_BURST = 12
/** Maximum number of unanswered requests, and of answers to one. */
const MAX_PENDING = 64
const MAX_ANSWERS = 20

/** Where a request came from, with its number there. */
export interface Asker {
  readonly edge: number
  readonly ask: number
}

export class StatusRequests {
  readonly #pending = new Map<number, { readonly from: Asker | undefined; answers: number }>()
  #asked = 0
  #busyUntil = Number.NEGATIVE_INFINITY

  /** Whether a request of a neighbour may be handled now; if so, it counts. */
  take(now: number): boolean {
    const busyUntil = Math.max(this.#busyUntil, now - ASK_BURST * ASK_MS) + ASK_MS
    if (busyUntil > now) return false
    this.#busyUntil = busyUntil
    return true
  }

  /** @param from undefined for a request of this peer @returns its number here */
  add(from: Asker | undefined): number {
    const ask = ++this.#asked
    this.#pending.set(ask, { from, answers: 0 })
    const [oldest] = this.#pending.keys()
    if (this.#pending.size > MAX_PENDING) this.#pending.delete(oldest)
    return ask
  }

  /** Counts an answer. @returns the request; undefined if it is unknown or has too many answers */
  answered(ask: number): { readonly from: Asker | undefined } | undefined {
    const pending = this.#pending.get(ask)
    return pending !== undefined && ++pending.answers <= MAX_ANSWERS ? pending : undefined
  }
}

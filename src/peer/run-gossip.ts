/**
 * When a peer gossips about its run: rarely, so that all peers together send a message every few seconds, and several times if
 * there may be two live peers with its identity. A peer that sees messages of two runs of a peer asks both to announce themselves;
 * the first to ask asks for all.
 */
import type { RunMessage } from '../view/index.js'

/** Interval in ms: per peer of the network, and its minimum. */
const RARE_MS = 6000
const LEAST_MS = 10_000
/** A peer that is asked announces its run for this long, at this interval, and not again before the pause has passed, in ms. */
const ASKED_MS = 6000
const ASKED_INTERVAL_MS = 1000
const PAUSE_MS = 30_000
/** Random delay before a peer asks, per peer of the network, and its minimum. */
const DELAY_MS = 20
const LEAST_DELAY_MS = 500

export class RunGossip {
  readonly #self: string
  readonly #random: () => number
  #sentAt = Number.NEGATIVE_INFINITY
  #askedAt = Number.NEGATIVE_INFINITY
  /** The peer to ask about, and when. */
  #doubt: { readonly id: string; readonly dueAt: number } | undefined
  /** When this or another peer last asked. */
  #anyAskedAt = Number.NEGATIVE_INFINITY

  /** @param random uniform in [0, 1) */
  constructor(self: string, random: () => number) {
    this.#self = self
    this.#random = random
  }

  /** Interval of the announcements in ms. @param peers number of peers in the network */
  intervalOf(peers: number): number {
    return Math.max(LEAST_MS, RARE_MS * peers)
  }

  /** The next announcement is due now, because its content has changed. */
  changed(): void {
    this.#sentAt = Number.NEGATIVE_INFINITY
  }

  /** There may be two live peers with this identity. */
  doubted(id: string, peers: number, now: number): void {
    if (this.#doubt !== undefined || now - this.#anyAskedAt < PAUSE_MS) return
    this.#doubt = { id, dueAt: now + this.#random() * Math.max(LEAST_DELAY_MS, DELAY_MS * peers) }
  }

  /** Handles a message of another peer, or of another run of this one. */
  receive({ doubt }: RunMessage, now: number): void {
    if (doubt === undefined) return
    this.#anyAskedAt = now
    this.#doubt = undefined
    if (doubt === this.#self) this.#asked(now)
  }

  /** @returns what to announce besides the run; undefined if nothing is due. Otherwise it counts as announced. */
  takeDue(peers: number, now: number): Pick<RunMessage, 'doubt'> | undefined {
    const asks = this.#doubt !== undefined && now >= this.#doubt.dueAt ? this.#doubt.id : undefined
    const wait = now - this.#askedAt < ASKED_MS ? ASKED_INTERVAL_MS : this.intervalOf(peers)
    if (asks === undefined && now - this.#sentAt < wait) return undefined
    this.#sentAt = now
    if (asks === undefined) return {}
    this.#anyAskedAt = now
    this.#doubt = undefined
    if (asks === this.#self) this.#asked(now)
    return { doubt: asks }
  }

  #asked(now: number): void {
    if (now - this.#askedAt >= PAUSE_MS) this.#askedAt = now
  }
}

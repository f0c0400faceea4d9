/** Which refusals of peers are logged: each reason once, and then with growing pauses, because refused peers try again and again. */

/** Pauses in ms after the first line about a peer, and the longest one. */
const FIRST_PAUSE_MS = 60_000
const LONGEST_PAUSE_MS = 3_600_000
const MAX_PEERS = 1000

interface Logged {
  readonly reason: string
  pause: number
  next: number
}

export class RefusalLog {
  readonly #now: () => number
  readonly #peers = new Map<string, Logged>()

  /** @param now a monotonic clock in milliseconds */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Whether to log that a peer was refused for this reason. */
  isDue(peer: string, reason: string): boolean {
    const now = this.#now()
    const logged = this.#peers.get(peer)
    if (logged?.reason === reason) {
      if (now < logged.next) return false
      logged.pause = Math.min(LONGEST_PAUSE_MS, 2 * logged.pause)
      logged.next = now + logged.pause
      return true
    }
    if (this.#peers.size >= MAX_PEERS) this.#peers.clear()
    this.#peers.set(peer, { reason, pause: FIRST_PAUSE_MS, next: now + FIRST_PAUSE_MS })
    return true
  }
}

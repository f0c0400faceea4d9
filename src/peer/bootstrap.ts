/**
 * Dials the configured addresses until each peer answers, with exponential backoff, and again when its connection is lost. A peer
 * that has closed its connection with a referral is dialled less often.
 */
import { InvitationRefusedError, type Log, type Network } from '../network/index.js'

const INITIAL_BACKOFF_MS = 200
const MAX_BACKOFF_MS = 15_000
/** The first dial waits until timers of this process are less late than this, in ms, but at most for `MAX_PROBES` of them. */
const LATE_MS = 100
const PROBE_MS = 50
const MAX_PROBES = 100
/** Time in ms until a peer that closed the connection with a referral is dialled again: without a tree neighbour, and with one. */
const REFERRED_ALONE_MS = 10_000
const REFERRED_LINKED_MS = 5 * 60 * 1000
/** Interval between checks of the connection. */
const CHECK_MS = 1000

export class Bootstrap {
  readonly #network: Network
  readonly #isLinked: () => boolean
  readonly #log: Log
  readonly #stop = new AbortController()
  readonly #wakeUps = new Set<() => void>()
  readonly #jitter = 0.75 + Math.random() / 2

  /** @param isLinked whether this peer has a tree neighbour */
  constructor(network: Network, addresses: readonly string[], isLinked: () => boolean, log: Log) {
    this.#network = network
    this.#isLinked = isLinked
    this.#log = log
    if (addresses.length > 0) void this.#dialAll(addresses)
  }

  /** Dials immediately, regardless of the backoff. */
  retry(): void {
    for (const wake of [...this.#wakeUps]) wake()
  }

  stop(): void {
    this.#stop.abort()
    for (const wake of [...this.#wakeUps]) wake()
  }

  async #dialAll(addresses: readonly string[]): Promise<void> {
    await this.#calm()
    for (const address of addresses) void this.#dialRepeatedly(address)
  }

  async #dialRepeatedly(address: string): Promise<void> {
    const { signal } = this.#stop
    let peer: string | undefined
    let wait = INITIAL_BACKOFF_MS
    let lastWarning = ''
    while (!signal.aborted) {
      if (this.#network.peers.some(({ id }) => id === peer) || this.#isReferredBy(peer)) {
        await this.#sleep(CHECK_MS)
        continue
      }
      try {
        peer = await this.#network.connect({ addresses: [address] }, signal)
        wait = INITIAL_BACKOFF_MS
        lastWarning = ''
        // The peer is listed as connected only after it has sent its listen addresses.
        await this.#sleep(CHECK_MS)
      } catch (error) {
        if (signal.aborted) return
        const { message } = error as Error
        const level = error instanceof InvitationRefusedError ? 'error' : 'warn'
        if (message !== lastWarning) this.#log(level, `${message}; trying again`, { address })
        lastWarning = message
        await this.#sleep(wait * (0.75 + Math.random() / 2))
        wait = Math.min(MAX_BACKOFF_MS, wait * 2)
      }
    }
  }

  /** Waits while the machine is overloaded, as when many peers start at once: dials would fail and be repeated. */
  async #calm(): Promise<void> {
    for (let probe = 0; probe < MAX_PROBES && !this.#stop.signal.aborted; probe++) {
      const due = performance.now() + PROBE_MS * (0.5 + Math.random())
      await this.#sleep(due - performance.now())
      if (performance.now() - due < LATE_MS) return
    }
  }

  #isReferredBy(peer: string | undefined): boolean {
    const pause = this.#isLinked() ? REFERRED_LINKED_MS : REFERRED_ALONE_MS
    return peer !== undefined && this.#network.wasReferredBy(peer, pause * this.#jitter)
  }

  #sleep(ms: number): Promise<void> {
    return new Promise(resolve => {
      const wake = () => {
        clearTimeout(timer)
        this.#wakeUps.delete(wake)
        resolve()
      }
      const timer = setTimeout(wake, ms)
      this.#wakeUps.add(wake)
    })
  }
}

/**
 * Keeps a peer in touch with the addresses that it was given: dials each until it answers, with growing waits, and again
 * when no connection is left.
 */
import type { Log, Network } from '../network/index.js'

const FIRST_WAIT_MS = 200
const LONGEST_WAIT_MS = 15_000
/** Between looks at whether any connection is left. */
const WATCH_MS = 1000

export class Bootstrap {
  readonly #network: Network
  readonly #log: Log
  readonly #stop = new AbortController()
  readonly #sleepers = new Set<() => void>()

  constructor(network: Network, addresses: readonly string[], log: Log) {
    this.#network = network
    this.#log = log
    for (const address of addresses) void this.#keep(address)
  }

  /** Dials at once, whatever the waits have grown to. */
  retry(): void {
    for (const wake of [...this.#sleepers]) wake()
  }

  stop(): void {
    this.#stop.abort()
    for (const wake of [...this.#sleepers]) wake()
  }

  async #keep(address: string): Promise<void> {
    const { signal } = this.#stop
    let peer: string | undefined
    let wait = FIRST_WAIT_MS
    let told = ''
    while (!signal.aborted) {
      if (this.#network.peers.some(({ id }) => id === peer)) {
        await this.#sleep(WATCH_MS)
        continue
      }
      try {
        peer = await this.#network.connect({ addresses: [address] }, signal)
        wait = FIRST_WAIT_MS
        told = ''
        // The peer shows among the connected ones only when it has said where it listens.
        await this.#sleep(WATCH_MS)
      } catch (error) {
        if (signal.aborted) return
        const { message } = error as Error
        if (message !== told) this.#log('warn', `${message}; trying again`, { address })
        told = message
        await this.#sleep(wait * (0.75 + Math.random() / 2))
        wait = Math.min(LONGEST_WAIT_MS, wait * 2)
      }
    }
  }

  #sleep(ms: number): Promise<void> {
    return new Promise(resolve => {
      const wake = () => {
        clearTimeout(timer)
        this.#sleepers.delete(wake)
        resolve()
      }
      const timer = setTimeout(wake, ms)
      this.#sleepers.add(wake)
    })
  }
}

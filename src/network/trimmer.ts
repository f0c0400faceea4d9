/**
 * Keeps connections free for new peers: when few are left, the oldest idle connections are closed. Their peers are referred to
 * others, so any number of peers can start with the address of one.
 */
import type { Connection } from '@libp2p/interface'
import type { Host } from './host.js'
import type { Limits } from './limits.js'
import type { KnownPeer } from './peer-table.js'
import { refer } from './referral.js'

/** Share of the connections that is kept free. */
const reservedShare = 0.1

export interface TrimmerOptions {
  readonly host: Host
  readonly limits: Limits
  /** Whether this peer needs the connection: for a session, for gossip, or as a relay. */
  readonly isUsed: (peer: string) => boolean
  /** Peers to include in referrals, the best first. */
  readonly contacts: () => readonly KnownPeer[]
}

export class Trimmer {
  readonly #options: TrimmerOptions
  readonly #closing = new Set<Connection>()
  readonly #timer: NodeJS.Timeout

  constructor(options: TrimmerOptions) {
    this.#options = options
    this.#timer = setInterval(() => this.#trim(), Math.max(100, options.limits.idleConnectionMs / 5))
    // Browsers number their timers, which keep nothing running.
    this.#timer.unref?.()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #trim(): void {
    const { host, limits, isUsed, contacts } = this.#options
    const connections = host.getConnections()
    const free = Math.ceil(limits.connections * reservedShare)
    let excess = connections.length - this.#closing.size - (limits.connections - free)
    if (excess <= 0) return
    const before = Date.now() - limits.idleConnectionMs
    const idle = connections.filter(connection => {
      const isOld = connection.timeline.open < before
      return isOld && !this.#closing.has(connection) && !isUsed(connection.remotePeer.toString())
    })
    idle.sort((a, b) => a.timeline.open - b.timeline.open)
    for (const connection of idle) {
      if (excess-- <= 0) break
      const peer = connection.remotePeer.toString()
      const others = contacts().filter(({ id }) => id !== peer)
      this.#closing.add(connection)
      refer(connection, others, limits)
        // The other end may have left, or may not support referrals.
        .catch(() => undefined)
        .finally(() => this.#closing.delete(connection))
    }
  }
}

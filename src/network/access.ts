/**
 * Access control: allow-list, bans that grow with each violation, and blocks. libp2p consults it as its connection gater before
 * dialling and as soon as the remote peer has proved its id.
 *
 * Half-open connections are accepted, but not yet authenticated. libp2p bounds their number in all; the share of each host is bounded
 * here, so that one host that holds its connections open cannot keep all others out.
 */
import type { ConnectionGater, MultiaddrConnection } from '@libp2p/interface'
import type { Membership } from './membership.js'

/** Duration of the first ban of a peer, in ms. It doubles with each further one. */
const firstBanMs = 1000
/** Maximum duration of a ban, in ms. */
const longestBanMs = 5 * 60 * 1000
/** The count of violations resets this long after the end of the last ban, in ms. */
const banResetMs = 10 * 60 * 1000
/** Maximum number of remembered bans; the oldest is evicted. */
const maxBans = 10_000

export class AccessControl {
  readonly #allowed: ReadonlySet<string> | undefined
  readonly #membership: Membership | undefined
  readonly #now: () => number
  readonly #bans = new Map<string, { violations: number; until: number; reason: string }>()
  #blocked: ReadonlySet<string> = new Set()

  /**
   * @param allowed allow-list of peer ids; undefined: all peers are allowed
   * @param now monotonic clock in ms
   * @param membership decides instead of the allow-list, in a network that takes invitations
   */
  constructor(
    allowed: ReadonlySet<string> | undefined,
    now: () => number = () => performance.now(),
    membership?: Membership
  ) {
    this.#allowed = allowed
    this.#membership = membership
    this.#now = now
  }

  /** Why a peer is denied, or undefined if it is not. */
  denialReason(peer: string): string | undefined {
    if (!this.#isAllowed(peer)) return 'it is not on the allow-list'
    if (this.#blocked.has(peer)) return 'it is blocked'
    const ban = this.#bans.get(peer)
    if (ban === undefined || ban.until <= this.#now()) return undefined
    return `banned for ${Math.ceil((ban.until - this.#now()) / 1000)} s: ${ban.reason}`
  }

  /**
   * Whether gossip that originates from a peer is accepted. Blocks affect connections only.
   * @returns undefined if it is ignored: the peer that forwards it may know of an admission that this one does not know yet
   */
  mayOriginate(peer: string): boolean | undefined {
    return this.#isAllowed(peer) || (this.#membership === undefined ? false : undefined)
  }

  #isAllowed(peer: string): boolean {
    if (this.#membership !== undefined) return this.#membership.has(peer) || !this.#membership.isKnown
    return this.#allowed === undefined || this.#allowed.has(peer)
  }

  /** Replaces the set of blocked peers. */
  block(peers: ReadonlySet<string>): void {
    this.#blocked = new Set(peers)
  }

  /** Bans a peer, for twice as long as the last time. @returns duration in ms */
  ban(peer: string, reason: string): number {
    const now = this.#now()
    const before = this.#bans.get(peer)
    const violations = before === undefined || before.until + banResetMs < now ? 1 : before.violations + 1
    const ms = Math.min(longestBanMs, firstBanMs * 2 ** (violations - 1))
    this.#bans.delete(peer)
    this.#bans.set(peer, { violations, until: now + ms, reason })
    if (this.#bans.size > maxBans) this.#bans.delete(this.#bans.keys().next().value as string)
    return ms
  }

  /** Connection gater for libp2p. Private addresses may be dialled: peers often share a LAN or a machine. */
  get gater(): ConnectionGater {
    const denies = (peer: { toString(): string }) => this.denialReason(peer.toString()) !== undefined
    return {
      denyDialPeer: denies,
      denyDialMultiaddr: () => false,
      // An invited peer that knows no members yet accepts no connections.
      denyInboundEncryptedConnection: peer => denies(peer) || this.#membership?.isKnown === false,
      denyOutboundEncryptedConnection: denies,
      denyInboundRelayReservation: denies,
      denyOutboundRelayedConnection: (source, destination) => denies(source) || denies(destination),
      denyInboundRelayedConnection: (_relay, peer) => denies(peer)
    }
  }
}

/** Part of a connection gater. @param perHost half-open connections of one host at a time */
export function limitHalfOpen(
  perHost: number
): Pick<ConnectionGater, 'denyInboundConnection' | 'denyInboundUpgradedConnection'> {
  const counts = new Map<string, number>()
  const counted = new WeakSet<MultiaddrConnection>()
  const release = (connection: MultiaddrConnection) => {
    if (!counted.delete(connection)) return
    const host = hostOf(connection)
    const left = (counts.get(host) ?? 1) - 1
    if (left > 0) counts.set(host, left)
    else counts.delete(host)
  }
  return {
    denyInboundConnection(connection) {
      const host = hostOf(connection)
      const count = counts.get(host) ?? 0
      if (count >= perHost) return true
      counts.set(host, count + 1)
      counted.add(connection)
      connection.addEventListener('close', () => release(connection), { once: true })
      return false
    },
    denyInboundUpgradedConnection(_peer, connection) {
      release(connection)
      return false
    }
  }
}

function hostOf({ remoteAddr }: MultiaddrConnection): string {
  return remoteAddr.getComponents()[0]?.value ?? ''
}

/** Pauses in ms after the first line about a peer, and the longest one. */
const FIRST_PAUSE_MS = 60_000
const LONGEST_PAUSE_MS = 3_600_000
const MAX_PEERS = 1000

interface Logged {
  readonly reason: string
  pause: number
  next: number
}

/** Decides which refusals of peers are logged: each reason once, and then with growing pauses, because refused peers try again and again. */
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

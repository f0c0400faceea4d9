/**
 * Who may connect: the allow-list, bans that grow with every offence, and blocks. libp2p asks it as its connection gater,
 * before dialling and as soon as the other end has proved its id.
 */
import type { ConnectionGater } from '@libp2p/interface'

/** First ban of a peer, ms. Each further one is twice as long. */
const firstBanMs = 1000
/** Longest ban, ms. */
const longestBanMs = 5 * 60 * 1000
/** Offences are forgotten after this time without a new one beyond the ban's end, ms. */
const banResetMs = 10 * 60 * 1000
/** Offenders remembered; beyond, the oldest is forgotten. */
const maxBans = 10_000

export class AccessControl {
  readonly #allowed: ReadonlySet<string> | undefined
  readonly #now: () => number
  readonly #bans = new Map<string, { offences: number; until: number; reason: string }>()
  #blocked: ReadonlySet<string> = new Set()

  /**
   * @param allowed ids of the only peers wanted; undefined: all are
   * @param now a monotonic clock in ms
   */
  constructor(allowed: ReadonlySet<string> | undefined, now: () => number = () => performance.now()) {
    this.#allowed = allowed
    this.#now = now
  }

  /** Why a peer is not wanted, or undefined if it is. */
  denialReason(peer: string): string | undefined {
    if (this.#allowed !== undefined && !this.#allowed.has(peer)) return 'it is not on the allow-list'
    if (this.#blocked.has(peer)) return 'it is blocked'
    const offender = this.#bans.get(peer)
    if (offender === undefined || offender.until <= this.#now()) return undefined
    return `banned for ${Math.ceil((offender.until - this.#now()) / 1000)} s: ${offender.reason}`
  }

  /** Whether a peer may be heard of at all, whoever brings it. Blocks cut links only, so they do not count here. */
  mayOriginate(peer: string): boolean {
    return this.#allowed === undefined || this.#allowed.has(peer)
  }

  /** Sets the blocked peers, in place of those before. */
  block(peers: ReadonlySet<string>): void {
    this.#blocked = new Set(peers)
  }

  /** Bans a peer, twice as long as the last time. @returns for how many ms */
  ban(peer: string, reason: string): number {
    const now = this.#now()
    const before = this.#bans.get(peer)
    const offences = before === undefined || before.until + banResetMs < now ? 1 : before.offences + 1
    const ms = Math.min(longestBanMs, firstBanMs * 2 ** (offences - 1))
    this.#bans.delete(peer)
    this.#bans.set(peer, { offences, until: now + ms, reason })
    if (this.#bans.size > maxBans) this.#bans.delete(this.#bans.keys().next().value as string)
    return ms
  }

  /** The libp2p side. Private addresses may be dialled: peers on one LAN or machine are the usual case. */
  get gater(): ConnectionGater {
    const denies = (peer: { toString(): string }) => this.denialReason(peer.toString()) !== undefined
    return {
      denyDialPeer: denies,
      denyDialMultiaddr: () => false,
      denyInboundEncryptedConnection: denies,
      denyOutboundEncryptedConnection: denies,
      denyInboundRelayReservation: denies,
      denyOutboundRelayedConnection: (source, destination) => denies(source) || denies(destination),
      denyInboundRelayedConnection: (_relay, peer) => denies(peer)
    }
  }
}

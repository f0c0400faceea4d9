/**
 * Peers that this node could join: roots from beacons, candidates from the driver, and peers mentioned by other peers. Stores
 * the last known label of each, backoffs after failures and violations, and which peers are not trusted. Bounded.
 */
import { type Contact, isOlder, type Label, type PeerKey, sameLabel } from './messages.js'
import type { OverlayTimers } from './options.js'

interface KnownPeer {
  addresses: readonly string[]
  label: Label | undefined
  /** Until when `label` counts. */
  labelUntil: number
  /** Whether it may be asked although its label is unknown. */
  isCandidate: boolean
  /** Consecutive failed dials and joins. */
  failures: number
  /** Consecutive refusals because its tree fragment was not older. */
  refusals: number
  /** Violations, and edges that it dropped soon after accepting, since the last edge that lasted. */
  strikes: number
  /** Do not dial before this time. */
  notBefore: number
  /** Reject all its sessions before this time. */
  bannedUntil: number
}

/** Number of intervals for which a beacon is valid. */
const INTERVALS = 3
/** Violations that are forgiven, of those that have not expired. One expires in each `banMax`. */
const FORGIVEN = 2
/** Most violations that count, so that trust returns after a bounded time. */
const MOST_COUNTED = 4

export class PeerBook {
  readonly #known = new Map<PeerKey, KnownPeer>()
  /** Time at which the last violation of a peer will have expired; Infinity if it is proven hostile. */
  readonly #penalties = new Map<PeerKey, number>()
  readonly #timers: OverlayTimers
  readonly #limit: number
  readonly #random: () => number

  constructor(timers: OverlayTimers, limit: number, random: () => number) {
    this.#timers = timers
    this.#limit = limit
    this.#random = random
  }

  /**
   * Records a root's label, from a beacon or from the root itself. A new label resets the backoff.
   * @param interval time in ms until the next beacon @default that of a root that has changed
   */
  recordLabel(now: number, label: Label, addresses: readonly string[], interval = this.#timers.beacon): void {
    const known = this.#touch(label.root, addresses)
    const isNew = known.label === undefined || !sameLabel(known.label, label)
    const until = now + INTERVALS * Math.min(interval, this.#timers.beaconMax)
    if (isNew && known.failures === 0 && known.strikes === 0) known.notBefore = 0
    known.label = label
    known.labelUntil = isNew ? until : Math.max(known.labelUntil, until)
  }

  /** Adds a peer that may be asked although its label is unknown. */
  addCandidate(peer: PeerKey, addresses: readonly string[]): void {
    this.#touch(peer, addresses).isCandidate = true
  }

  /** No longer a peer to join. Bans remain. */
  forget(peer: PeerKey): void {
    const known = this.#known.get(peer)
    if (known === undefined) return
    known.isCandidate = false
    known.label = undefined
  }

  contact(peer: PeerKey): Contact {
    return { peer, addresses: this.#known.get(peer)?.addresses ?? [] }
  }

  isBanned(now: number, peer: PeerKey): boolean {
    return (this.#known.get(peer)?.bannedUntil ?? 0) > now
  }

  /**
   * Whether a peer is proven hostile, or has violated the protocol repeatedly. Only violations count, and neither failures nor silence,
   * so that no fault makes a correct peer lose the trust of others.
   */
  isDistrusted(now: number, peer: PeerKey): boolean {
    return this.#distrustedUntil(peer) > now
  }

  /** The peers that are not trusted. */
  distrusted(now: number): PeerKey[] {
    return [...this.#penalties.keys()].filter(peer => this.isDistrusted(now, peer))
  }

  /** The peer is proven hostile. */
  distrust(peer: PeerKey): void {
    this.#penalise(peer, Number.POSITIVE_INFINITY)
  }

  isWaiting(now: number, peer: PeerKey): boolean {
    return this.#due(peer, this.#known.get(peer)) > now
  }

  /**
   * A dial or join failed: back off for 0.2 s, 0.4 s … 8 s (with the default timers), ± 50 %. The root may have gone, so its label does
   * not count for longer than that of a root that has changed.
   */
  joinFailed(now: number, peer: PeerKey): void {
    const known = this.#touch(peer)
    known.labelUntil = Math.min(known.labelUntil, now + INTERVALS * this.#timers.beacon)
    known.failures += 1
    const wait = this.#timers.backoffMin * 2 ** Math.min(known.failures - 1, 30)
    known.notBefore = now + this.#jitter(Math.min(wait, this.#timers.backoffMax))
  }

  /**
   * The peer is overloaded, or its tree fragment is not older: retry after 0.8 s, 1.6 s … 8 s, or after 32 s if it is this node's
   * own.
   */
  refused(now: number, peer: PeerKey, same: boolean): void {
    const { backoffMin, backoffMax } = this.#timers
    const known = this.#touch(peer)
    known.failures = 0
    known.refusals += 1
    const wait = Math.min(backoffMin * 2 ** Math.min(known.refusals + 1, 30), backoffMax)
    known.notBefore = now + this.#jitter(same ? 4 * backoffMax : wait)
  }

  /** The peer accepted this node and soon dropped it: avoid it, four times longer each time. */
  edgeDropped(now: number, peer: PeerKey): void {
    const known = this.#touch(peer)
    known.notBefore = now + this.#jitter(this.#strike(known))
  }

  /** The peer violated the protocol: neither dial it nor accept its sessions. */
  ban(now: number, peer: PeerKey): void {
    const known = this.#touch(peer)
    known.bannedUntil = now + this.#strike(known)
    known.notBefore = known.bannedUntil
    const { banMax } = this.#timers
    const expires = Math.max(now, this.#penalties.get(peer) ?? now) + banMax
    this.#penalise(
      peer,
      expires === Number.POSITIVE_INFINITY ? expires : Math.min(expires, now + MOST_COUNTED * banMax)
    )
  }

  /** An edge with the peer lasted. */
  edgeLasted(peer: PeerKey): void {
    const known = this.#known.get(peer)
    if (known === undefined) return
    known.failures = 0
    known.strikes = 0
  }

  /** This node's label became younger, which invalidates earlier refusals. */
  resetRefusals(): void {
    for (const known of this.#known.values()) {
      known.refusals = 0
      if (known.failures === 0 && known.strikes === 0) known.notBefore = 0
    }
  }

  /** The peer to join now: the root of the oldest known tree fragment older than `own`, otherwise a candidate. */
  choose(now: number, own: Label, excluded: (peer: PeerKey) => boolean): Contact | undefined {
    let oldest: Label | undefined
    let candidate: PeerKey | undefined
    let waited = now
    for (const [peer, known] of this.#known) {
      const due = this.#due(peer, known)
      if (due > now || excluded(peer)) continue
      const label = this.#currentLabel(now, known)
      if (label !== undefined && isOlder(label, own)) {
        if (oldest === undefined || isOlder(label, oldest)) oldest = label
      } else if (known.isCandidate && due <= waited) {
        waited = due
        candidate = peer
      }
    }
    const peer = oldest?.root ?? candidate
    return peer === undefined ? undefined : this.contact(peer)
  }

  /** Whether a peer with a label older than `own` is known that is not banned and to which no join has failed. */
  knowsOlder(now: number, own: Label): boolean {
    for (const [peer, known] of this.#known) {
      const label = this.#currentLabel(now, known)
      const isTrusted = known.bannedUntil <= now && !this.isDistrusted(now, peer)
      const isWilling = known.failures === 0 && known.strikes === 0 && isTrusted
      if (label !== undefined && isWilling && isOlder(label, own)) return true
    }
    return false
  }

  /** Time at which `choose` may next return a peer if no other event occurs. */
  nextDue(now: number, own: Label): number {
    let next = Number.POSITIVE_INFINITY
    for (const [peer, known] of this.#known) {
      const label = this.#currentLabel(now, known)
      const isJoinable = known.isCandidate || (label !== undefined && isOlder(label, own))
      const due = this.#due(peer, known)
      if (isJoinable && due > now && due < next) next = due
    }
    return next
  }

  #touch(peer: PeerKey, addresses: readonly string[] = []): KnownPeer {
    let known = this.#known.get(peer)
    if (known === undefined) {
      if (this.#known.size >= this.#limit) this.#evict()
      known = {
        addresses: [],
        label: undefined,
        labelUntil: 0,
        isCandidate: false,
        failures: 0,
        refusals: 0,
        strikes: 0,
        notBefore: 0,
        bannedUntil: 0
      }
    } else {
      this.#known.delete(peer)
    }
    // Re-inserted, so that the map is in order of last use.
    this.#known.set(peer, known)
    if (addresses.length > 0) known.addresses = addresses
    return known
  }

  /** Evicts the least recently used peer, if possible one that is neither a candidate nor has strikes. */
  #evict(): void {
    let evicted: PeerKey | undefined
    for (const [peer, known] of this.#known) {
      evicted ??= peer
      if (known.isCandidate || known.strikes > 0) continue
      evicted = peer
      break
    }
    if (evicted !== undefined) this.#known.delete(evicted)
  }

  #currentLabel(now: number, known: KnownPeer): Label | undefined {
    return now <= known.labelUntil ? known.label : undefined
  }

  #due(peer: PeerKey, known: KnownPeer | undefined): number {
    return Math.max(known?.notBefore ?? 0, known?.bannedUntil ?? 0, this.#distrustedUntil(peer))
  }

  #distrustedUntil(peer: PeerKey): number {
    return (this.#penalties.get(peer) ?? 0) - FORGIVEN * this.#timers.banMax
  }

  /** The penalty that is oldest is forgotten first. */
  #penalise(peer: PeerKey, until: number): void {
    this.#penalties.delete(peer)
    this.#penalties.set(peer, until)
    if (this.#penalties.size > this.#limit) this.#penalties.delete(this.#penalties.keys().next().value as PeerKey)
  }

  #strike(known: KnownPeer): number {
    known.strikes += 1
    const wait = this.#timers.backoffMin * 4 ** Math.min(known.strikes, 15)
    return Math.min(wait, this.#timers.banMax)
  }

  #jitter(wait: number): number {
    return wait * (0.5 + this.#random())
  }
}

/**
 * The peers that this node could join: heard of by beacons, offered by the driver, or named by other peers. Keeps each
 * one's last known label, and how long to leave it alone after failures and misbehaviour. Bounded.
 */
import { type Contact, isOlder, type Label, type PeerKey, sameLabel } from './label.js'
import type { OverlayTimers } from './options.js'

interface Known {
  addresses: readonly string[]
  label: Label | undefined
  /** When `label` was learnt. */
  heardAt: number
  /** Worth asking without having heard its label. */
  candidate: boolean
  /** Dials and joins failed in a row. */
  failures: number
  /** Lies, invalid frames and accept-then-drop since the last edge that lasted. */
  strikes: number
  /** Not to be dialled before this time. */
  notBefore: number
  /** Not to be talked to at all before this time. */
  bannedUntil: number
}

export class PeerBook {
  readonly #known = new Map<PeerKey, Known>()
  readonly #timers: OverlayTimers
  readonly #limit: number
  readonly #random: () => number

  constructor(timers: OverlayTimers, limit: number, random: () => number) {
    this.#timers = timers
    this.#limit = limit
    this.#random = random
  }

  /** A root's label, from a beacon or from the root itself. A label not heard before is worth trying at once. */
  learn(now: number, label: Label, addresses: readonly string[]): void {
    const known = this.#touch(label.root, addresses)
    const news = known.label === undefined || !sameLabel(known.label, label)
    if (news && known.failures === 0 && known.strikes === 0) known.notBefore = 0
    known.label = label
    known.heardAt = now
  }

  /** A peer that may be asked though its label is unknown. */
  offer(peer: PeerKey, addresses: readonly string[]): void {
    this.#touch(peer, addresses).candidate = true
  }

  forget(peer: PeerKey): void {
    this.#known.delete(peer)
  }

  contact(peer: PeerKey): Contact {
    return { peer, addresses: this.#known.get(peer)?.addresses ?? [] }
  }

  isBanned(now: number, peer: PeerKey): boolean {
    return (this.#known.get(peer)?.bannedUntil ?? 0) > now
  }

  isWaiting(now: number, peer: PeerKey): boolean {
    return this.#due(this.#known.get(peer)) > now
  }

  /** A dial or join failed: wait 0.2 s, 0.4 s … 8 s (with the default timers), ± 50 %. */
  failed(now: number, peer: PeerKey): void {
    const known = this.#touch(peer)
    known.failures += 1
    const wait = this.#timers.backoffMin * 2 ** Math.min(known.failures - 1, 30)
    known.notBefore = now + this.#jitter(Math.min(wait, this.#timers.backoffMax))
  }

  /** The peer's fragment is not older than ours: nothing to be had there for a while, least of all if it is our own. */
  notOlder(now: number, peer: PeerKey, same: boolean): void {
    const known = this.#touch(peer)
    known.failures = 0
    known.notBefore = now + this.#jitter(this.#timers.backoffMax * (same ? 4 : 1))
  }

  /** The peer accepted us and then let us down soon: leave it alone, four times longer each time. */
  dropped(now: number, peer: PeerKey): void {
    const known = this.#touch(peer)
    known.notBefore = now + this.#jitter(this.#strike(known))
  }

  /** The peer lied or sent invalid frames: also refuse what it sends. */
  ban(now: number, peer: PeerKey): void {
    const known = this.#touch(peer)
    known.bannedUntil = now + this.#strike(known)
    known.notBefore = known.bannedUntil
  }

  /** An edge with the peer has lasted. */
  proved(peer: PeerKey): void {
    const known = this.#known.get(peer)
    if (known === undefined) return
    known.failures = 0
    known.strikes = 0
  }

  /** Our own label became younger, so that earlier answers mean nothing any more: those who did no wrong may be asked. */
  reopen(): void {
    for (const known of this.#known.values()) if (known.failures === 0 && known.strikes === 0) known.notBefore = 0
  }

  /** Whom to join now: the root of the oldest fragment that is older than `own`, else a candidate worth asking. */
  choose(now: number, own: Label, excluded: (peer: PeerKey) => boolean): Contact | undefined {
    let oldest: Label | undefined
    let candidate: PeerKey | undefined
    let waited = now
    for (const [peer, known] of this.#known) {
      const due = this.#due(known)
      if (due > now || excluded(peer)) continue
      const label = this.#freshLabel(now, known)
      if (label !== undefined && isOlder(label, own)) {
        if (oldest === undefined || isOlder(label, oldest)) oldest = label
      } else if (known.candidate && due <= waited) {
        waited = due
        candidate = peer
      }
    }
    const peer = oldest?.root ?? candidate
    return peer === undefined ? undefined : this.contact(peer)
  }

  /** When `choose` may next have an answer, if nothing happens before. */
  nextDue(now: number, own: Label): number {
    let next = Number.POSITIVE_INFINITY
    for (const known of this.#known.values()) {
      const label = this.#freshLabel(now, known)
      const useful = known.candidate || (label !== undefined && isOlder(label, own))
      const due = this.#due(known)
      if (useful && due > now && due < next) next = due
    }
    return next
  }

  #touch(peer: PeerKey, addresses: readonly string[] = []): Known {
    let known = this.#known.get(peer)
    if (known === undefined) {
      if (this.#known.size >= this.#limit) this.#evict()
      known = {
        addresses: [],
        label: undefined,
        heardAt: 0,
        candidate: false,
        failures: 0,
        strikes: 0,
        notBefore: 0,
        bannedUntil: 0
      }
    } else {
      this.#known.delete(peer)
    }
    // Re-inserted, so that the map runs from the longest untouched to the latest.
    this.#known.set(peer, known)
    if (addresses.length > 0) known.addresses = addresses
    return known
  }

  /** Drops the longest untouched peer, strangers before candidates and culprits. */
  #evict(): void {
    let victim: PeerKey | undefined
    for (const [peer, known] of this.#known) {
      victim ??= peer
      if (known.candidate || known.strikes > 0) continue
      victim = peer
      break
    }
    if (victim !== undefined) this.#known.delete(victim)
  }

  #freshLabel(now: number, known: Known): Label | undefined {
    return now - known.heardAt <= 3 * this.#timers.beacon ? known.label : undefined
  }

  #due(known: Known | undefined): number {
    return known === undefined ? 0 : Math.max(known.notBefore, known.bannedUntil)
  }

  #strike(known: Known): number {
    known.strikes += 1
    const wait = this.#timers.backoffMin * 4 ** Math.min(known.strikes, 15)
    return Math.min(wait, this.#timers.penaltyMax)
  }

  #jitter(wait: number): number {
    return wait * (0.5 + this.#random())
  }
}

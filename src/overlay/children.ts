/**
 * The children of a node and the summaries of their subtrees: where to redirect a joining peer, what to report to the parent,
 * and which slot to offer to which branch.
 */

import { MAX_PATH, MAX_SUBTREE } from './codec.js'
import {
  BASE_TRANSPORTS,
  type Contact,
  type PeerKey,
  type SessionId,
  type Slot,
  type Summary,
  type Transports,
  type TransportsOf
} from './messages.js'

export interface Child {
  readonly session: SessionId
  readonly peer: PeerKey
  addresses: readonly string[]
  /** Transports that it can dial. */
  readonly dials: Transports
  /** Times at which the edge was created and the last message arrived. */
  readonly since: number
  lastReceived: number
  /** Last measured round trip, in ms. */
  roundTrip: number
  /** Whether no peers are passed on to it, and others may take its place. */
  isDistrusted: boolean
  /** Undefined until the first UP. */
  summary: Summary | undefined
  /** Number of peers redirected to it since the last UP. */
  redirected: number
}

/** A deep branch and a slot for part of it. Depths are relative to the reporting node. */
interface Imbalance {
  readonly child: Child
  readonly slot: Slot
  readonly deepest: number
}

export class ChildTable {
  readonly #children = new Map<SessionId, Child>()
  readonly #capacity: number
  readonly #transportsOf: TransportsOf

  /** @param capacity degree − 1: one edge is reserved for the parent. */
  constructor(capacity: number, transportsOf: TransportsOf) {
    this.#capacity = capacity
    this.#transportsOf = transportsOf
  }

  get size(): number {
    return this.#children.size
  }

  get full(): boolean {
    return this.#children.size >= this.#capacity
  }

  [Symbol.iterator](): IterableIterator<Child> {
    return this.#children.values()
  }

  get(session: SessionId): Child | undefined {
    return this.#children.get(session)
  }

  byPeer(peer: PeerKey): Child | undefined {
    for (const child of this.#children.values()) if (child.peer === peer) return child
    return undefined
  }

  add(child: Child): void {
    this.#children.set(child.session, child)
  }

  delete(session: SessionId): void {
    this.#children.delete(session)
  }

  /**
   * Target of the redirection of a joining peer, which is then counted as redirected: the child with the nearest free slot, then
   * the one with the smallest subtree, including redirected peers. The first peer after an UP is redirected to the reported slot,
   * which saves intermediate hops. Further peers are redirected to the child, whose information is newer. Undefined if the
   * joining peer cannot dial any of them.
   * @param dials transports of the joining peer
   */
  redirectTarget(dials: Transports): Contact | undefined {
    const child = this.#redirectChild(dials)
    if (child === undefined) return undefined
    child.redirected += 1
    const slot = this.#slotFor(child, dials)?.contact
    return slot !== undefined && (child.redirected === 1 || !this.#isDialable(child, dials)) ? slot : child
  }

  /** The same, but undefined unless a child has reported a free slot, or has not reported yet. */
  redirectSlot(dials: Transports): Contact | undefined {
    const child = this.#redirectChild(dials)
    return child && this.#slotFor(child, dials) ? this.redirectTarget(dials) : undefined
  }

  /**
   * The child that makes room for a tab that cannot be passed on: the one with the smallest subtree among the peers under Node.js,
   * if one of these can dial a slot below a child.
   */
  movable(): Child | undefined {
    const children = [...this.#children.values()]
    if (children.every(child => this.#slotFor(child, BASE_TRANSPORTS) === undefined)) return undefined
    return smallest(children.filter(({ dials }) => (dials & BASE_TRANSPORTS) === BASE_TRANSPORTS))
  }

  /** The tab with the smallest subtree. @param isReachable whether other tabs must be able to dial it */
  tab(isReachable: boolean): Child | undefined {
    const isTab = ({ addresses }: Child) => {
      const transports = this.#transportsOf(addresses)
      return (transports & BASE_TRANSPORTS) === 0 && (transports !== 0 || !isReachable)
    }
    return smallest([...this.#children.values()].filter(isTab))
  }

  /** A child whose place a trusted peer may take. */
  distrusted(): Child | undefined {
    return [...this.#children.values()].find(child => child.isDistrusted)
  }

  #isDialable({ addresses }: { readonly addresses: readonly string[] }, dials: Transports): boolean {
    return (this.#transportsOf(addresses) & dials) !== 0
  }

  /** The reported slot of a child if it can be dialled. */
  #slotFor(child: Child, dials: Transports): Slot | undefined {
    const slot = this.#slotOf(child)
    return slot && this.#isDialable(slot.contact, dials) ? slot : undefined
  }

  /** A child that has not reported yet has most likely just joined and has free slots. */
  #slotOf(child: Child): Slot | undefined {
    if (child.isDistrusted) return undefined
    if (child.summary !== undefined) return child.summary.slot
    const { peer, addresses } = child
    return this.#transportsOf(addresses) === 0 ? undefined : { distance: 0, contact: { peer, addresses } }
  }

  #redirectChild(dials: Transports): Child | undefined {
    let best: Child | undefined
    let bestDistance = 0
    let bestSize = 0
    for (const child of this.#children.values()) {
      if (child.isDistrusted) continue
      const slot = this.#slotFor(child, dials)
      if (slot === undefined && !this.#isDialable(child, dials)) continue
      const distance = (slot?.distance ?? MAX_PATH) + Math.floor(child.redirected / this.#capacity)
      const size = (child.summary?.size ?? 1) + child.redirected
      if (best === undefined || distance < bestDistance || (distance === bestDistance && size < bestSize)) {
        best = child
        bestDistance = distance
        bestSize = size
      }
    }
    return best
  }

  /** Summary for the parent. @param accepts whether this node accepts a further child, unless it is full @default true */
  summary(self: Contact, accepts = true): Summary {
    let size = 1
    let height = 0
    const own = accepts ? this.#ownSlot(self) : undefined
    for (const child of this.#children.values()) {
      size += child.summary?.size ?? 1
      height = Math.max(height, 1 + (child.summary?.height ?? 0))
    }
    const slot = this.#bestSlot(own, this.#children.values())
    // Wrong summaries of children must not make the message unencodable.
    return { size: Math.min(size, MAX_SUBTREE), height: Math.min(height, MAX_PATH), slot }
  }

  /** The pair of a deep branch and a shallow slot outside it with the largest gain; undefined if no move gains anything. */
  imbalance(self: Contact): Imbalance | undefined {
    let worst: Imbalance | undefined
    let worstGain = 0
    for (const child of this.#children.values()) {
      const deepest = 1 + (child.summary?.height ?? 0)
      const slot = this.#slotOutside(child, self)
      if (slot === undefined) continue
      const gain = deepest - slot.distance - 1
      if (gain > worstGain) {
        worstGain = gain
        worst = { child, slot, deepest }
      }
    }
    return worst
  }

  /** A free place of this node, unless no peer can dial it. */
  #ownSlot(self: Contact): Slot | undefined {
    return this.full || this.#transportsOf(self.addresses) === 0 ? undefined : { distance: 0, contact: self }
  }

  #slotOutside(branch: Child, self: Contact): Slot | undefined {
    const others = [...this.#children.values()].filter(child => child !== branch)
    return this.#bestSlot(this.#ownSlot(self), others)
  }

  /** The nearest slot that all can dial, or else the nearest of a tab. Distances are those from this node. */
  #bestSlot(own: Slot | undefined, children: Iterable<Child>): Slot | undefined {
    let best = own
    for (const child of children) {
      const slot = this.#slotOf(child)
      if (slot === undefined || slot.distance >= MAX_PATH) continue
      const below = { distance: slot.distance + 1, contact: slot.contact }
      if (best === undefined || this.#isBetter(below, best)) best = below
    }
    return best
  }

  #isBetter(slot: Slot, than: Slot): boolean {
    const isForAll = this.#isDialable(slot.contact, BASE_TRANSPORTS)
    const wasForAll = this.#isDialable(than.contact, BASE_TRANSPORTS)
    return isForAll === wasForAll ? slot.distance < than.distance : isForAll
  }
}

function smallest(children: readonly Child[]): Child | undefined {
  let best: Child | undefined
  for (const child of children)
    if (best === undefined || (child.summary?.size ?? 1) < (best.summary?.size ?? 1)) best = child
  return best
}

export function sameSummary(a: Summary | undefined, b: Summary): boolean {
  return (
    a !== undefined &&
    a.size === b.size &&
    a.height === b.height &&
    a.slot?.distance === b.slot?.distance &&
    a.slot?.contact.peer === b.slot?.contact.peer
  )
}

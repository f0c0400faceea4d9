/**
 * The children of a node and the summaries of their subtrees: where to redirect a joining peer, what to report to the parent,
 * and which slot to offer to which branch.
 */
import type { SessionId } from './effects.js'
import type { Contact, PeerKey } from './label.js'
import type { Slot, Summary } from './messages.js'
import { MAX_PATH, MAX_SUBTREE } from './wire.js'

export interface Child {
  readonly session: SessionId
  readonly peer: PeerKey
  readonly addresses: readonly string[]
  /** When the edge was created, and when the last message arrived. */
  readonly since: number
  lastReceived: number
  /** Last measured round trip, in ms. */
  roundTrip: number
  /** Undefined until the first UP. */
  summary: Summary | undefined
  /** Number of peers redirected to it since the last UP. */
  redirected: number
}

/** A deep branch and a slot for part of it. Depths are relative to the reporting node. */
export interface Imbalance {
  readonly child: Child
  readonly slot: Slot
  readonly deepest: number
}

export class ChildTable {
  readonly #children = new Map<SessionId, Child>()
  readonly #capacity: number

  /** @param capacity degree − 1: one edge is reserved for the parent. */
  constructor(capacity: number) {
    this.#capacity = capacity
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
   * which saves intermediate hops. Further peers are redirected to the child, whose information is newer.
   */
  redirectTarget(): Contact | undefined {
    const child = this.#redirectChild()
    if (child === undefined) return undefined
    child.redirected += 1
    return (child.redirected === 1 ? slotOf(child)?.contact : undefined) ?? child
  }

  /** The same, but undefined unless a child has reported a free slot, or has not reported yet. */
  redirectSlot(): Contact | undefined {
    const child = this.#redirectChild()
    return child && slotOf(child) ? this.redirectTarget() : undefined
  }

  #redirectChild(): Child | undefined {
    let best: Child | undefined
    let bestDistance = 0
    let bestSize = 0
    for (const child of this.#children.values()) {
      const distance = (slotOf(child)?.distance ?? MAX_PATH) + Math.floor(child.redirected / this.#capacity)
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
    let slot: Slot | undefined = this.full || !accepts ? undefined : { distance: 0, contact: self }
    for (const child of this.#children.values()) {
      size += child.summary?.size ?? 1
      height = Math.max(height, 1 + (child.summary?.height ?? 0))
      const below = slotOf(child)
      if (
        below !== undefined &&
        below.distance < MAX_PATH &&
        (slot === undefined || below.distance + 1 < slot.distance)
      ) {
        slot = { distance: below.distance + 1, contact: below.contact }
      }
    }
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

  #slotOutside(branch: Child, self: Contact): Slot | undefined {
    if (!this.full) return { distance: 0, contact: self }
    let best: Slot | undefined
    for (const child of this.#children.values()) {
      const slot = child === branch ? undefined : slotOf(child)
      if (slot !== undefined && (best === undefined || slot.distance + 1 < best.distance)) {
        best = { distance: slot.distance + 1, contact: slot.contact }
      }
    }
    return best
  }
}

/** A child that has not reported yet has most likely just joined and has free slots. */
function slotOf(child: Child): Slot | undefined {
  return child.summary === undefined
    ? { distance: 0, contact: { peer: child.peer, addresses: child.addresses } }
    : child.summary.slot
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

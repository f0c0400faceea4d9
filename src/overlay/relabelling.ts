/**
 * Labels and the freeze. A node that loses its parent becomes the root of a tree fragment with a younger label. It may join
 * another fragment only after its whole subtree has adopted that label (overlay rule 4), which keeps the overlay acyclic.
 *
 * Voluntary moves. Tree fragments merge as a whole, so trees can grow deep. A node with a free slot below it and a branch deeper
 * than that slot offers the slot down that branch. The topmost node for which the move brings at least half of the possible gain
 * accepts, and moves with its subtree as if its parent had died, including the freeze, so moves need no safety argument of their
 * own. Each move makes every moved node shallower; moves end when the tree has the minimum height.
 */

import { MAX_PATH } from './codec.js'
import {
  type Contact,
  type EdgeEnd,
  type Freeze,
  type Frozen,
  isOlder,
  type Label,
  MAX_CREATED_AT,
  type Offer,
  type PeerKey,
  type Relabel,
  sameLabel
} from './messages.js'
import type { Parent, State } from './state.js'

/** An edge is considered stable after this many `dead` times. */
export const STABLE_AFTER = 2

/** Number of former ancestors that are asked before other peers. */
const MAX_HINTS = 3

/**
 * The parent is lost or being left. The node becomes a root, frozen until every child has acknowledged the new label.
 * @param hints peers to ask first
 */
export function becomeRoot(state: State, now: number, reason: EdgeEnd, hints: readonly Contact[] = []): void {
  const { parent } = state
  if (parent === undefined) return
  const { timers, self, random } = state.settings
  if (reason !== 'moving') {
    if (now - parent.since < STABLE_AFTER * timers.dead) state.book.edgeDropped(now, parent.peer)
    else state.book.edgeLasted(parent.peer)
  }
  const ancestors = state.path.slice(0, -1).reverse()
  state.hints = [...hints, ...ancestors].slice(0, hints.length + MAX_HINTS)
  state.parent = undefined
  state.path = []
  state.book.resetRefusals()
  state.beaconInterval = timers.beacon
  state.beaconAt = now + (timers.beacon / 4) * random()
  state.edgeDown(parent.session, parent.peer, reason)
  if (state.label.createdAt >= MAX_CREATED_AT) {
    // A wrong label has exhausted the range of younger ones. Without children any label is safe.
    for (const child of [...state.children]) {
      state.closeWithBye(child.session, 'violation')
      state.dropChild(now, child.session, 'violation')
    }
    state.label = { createdAt: Math.floor(now), root: self }
    return
  }
  relabel(state, now, { createdAt: Math.max(Math.floor(now), state.label.createdAt + 1), root: self }, 'freeze')
}

/**
 * A root without an attempt takes a label that is younger than `label`, so that it may join that fragment.
 * @returns false if there is no such label
 */
export function becomeYounger(state: State, now: number, label: Label): boolean {
  const createdAt = Math.max(Math.floor(now), state.label.createdAt + 1, label.createdAt + 1)
  if (createdAt > MAX_CREATED_AT) return false
  state.book.resetRefusals()
  state.beaconsOften(now)
  relabel(state, now, { createdAt, root: state.settings.self }, 'freeze')
  return true
}

/** Adopts a label and forwards it to all children as LABEL or FREEZE. */
export function relabel(state: State, now: number, label: Label, kind: 'label' | 'freeze'): void {
  state.label = label
  const path = ownPath(state)
  if (path.length > MAX_PATH) {
    for (const child of [...state.children]) {
      state.closeWithBye(child.session, 'depth')
      state.dropChild(now, child.session, 'depth')
    }
  }
  for (const child of state.children) state.send(child.session, { kind, label, path })
  if (kind === 'freeze') {
    const waiting = new Set([...state.children].map(child => child.session))
    state.freeze = { waiting, until: now + freezeTimeout(state) }
  }
}

/** Handles FREEZE or LABEL from the parent. Returns false if it violates the protocol. */
export function onParentLabel(
  state: State,
  now: number,
  message: Freeze | Relabel,
  { peer, session }: Parent
): boolean {
  const { kind, label, path } = message
  // Joining makes a tree fragment older, splitting off makes it younger, and joining requires that the freeze is over.
  const ordered = kind === 'label' ? isOlder(label, state.label) && !state.freeze : isOlder(state.label, label)
  if (!ordered || !isPathFrom(path, label, peer)) return false
  if (closesCycle(state, path)) {
    state.closeWithBye(session, 'violation')
    becomeRoot(state, now, 'violation')
    return true
  }
  state.path = path
  relabel(state, now, label, kind)
  return true
}

export function onFrozen(state: State, session: number, message: Frozen): void {
  if (sameLabel(message.label, state.label)) state.freeze?.waiting.delete(session)
}

/** Ends the freeze when all children have acknowledged, or drops those that have not in time. */
export function completeFreeze(state: State, now: number): void {
  const { freeze } = state
  if (freeze === undefined) return
  if (now >= freeze.until) {
    for (const session of [...freeze.waiting]) {
      state.closeWithBye(session, 'timeout')
      state.dropChild(now, session, 'timeout')
    }
  }
  if (freeze.waiting.size > 0) return
  state.freeze = undefined
  if (state.parent !== undefined) state.send(state.parent.session, { kind: 'frozen', label: state.label })
}

/** Path for this node's children. Only the root and the last two peers keep their addresses. */
export function ownPath(state: State): Contact[] {
  const above = state.path.map((contact, i) =>
    i === 0 || i === state.path.length - 1 ? contact : { peer: contact.peer, addresses: [] }
  )
  return [...above, state.self]
}

/** Whether a path starts at the label's root and ends at its sender. */
export function isPathFrom(path: readonly Contact[], label: Label, sender: PeerKey): boolean {
  return path.length > 0 && path[0].peer === label.root && path[path.length - 1].peer === sender
}

/**
 * Whether this node is on the path of its new parent. Without children this is no cycle: the node has restarted, and the
 * descendants of its previous incarnation have not detected that yet.
 */
export function closesCycle(state: State, path: readonly Contact[]): boolean {
  return state.children.size > 0 && path.some(contact => contact.peer === state.settings.self)
}

/** Time limit of a freeze: each level of the subtree may have to wait for silent peers; deeper nodes time out first. */
function freezeTimeout(state: State): number {
  const { height } = state.children.summary(state.self)
  return (state.settings.timers.dead + state.patience) * (2 + Math.min(height, 8))
}

/**
 * Offers a slot if the subtree is unbalanced. Called at each heartbeat; waits between offers as long as the effect of the
 * last one may take to be reported from the leaves.
 */
export function offerSlot(state: State, now: number): void {
  if (now < state.offerAt || state.freeze !== undefined || state.isLate) return
  const { height } = state.children.summary(state.self)
  state.offerAt = now + state.jitter(state.settings.timers.heartbeat * (2 + height / 2), 0.25)
  const imbalance = state.children.imbalance(state.self)
  if (imbalance === undefined) return
  const { child, slot, deepest } = imbalance
  const depth = state.path.length
  const slotDepth = depth + slot.distance
  // Exceeds the depth limit only if a child sends wrong summaries.
  if (Math.max(slotDepth, depth + deepest) > MAX_PATH) return
  state.send(child.session, { kind: 'offer', contact: slot.contact, slotDepth, deepest: depth + deepest })
}

/** Accepts an offer, or passes it to the deepest branch. */
export function onOffer(state: State, now: number, offer: Offer): void {
  const { parent } = state
  if (state.isLate || parent === undefined || state.freeze !== undefined || offer.contact.peer === state.settings.self)
    return
  if (state.book.isDistrusted(now, offer.contact.peer)) return
  const { timers } = state.settings
  const depth = state.path.length
  const deepest = depth + state.children.summary(state.self).height
  const gain = depth - (offer.slotDepth + 1)
  const possible = deepest - (offer.slotDepth + 1)
  if (possible < 1) return
  if (state.canDial(offer.contact.addresses) && gain >= 1 && 2 * gain >= possible) {
    if (now - state.movedAt < timers.moveHold) return
    state.movedAt = now
    const former = state.path[state.path.length - 1]
    state.closeWithBye(parent.session, 'moving')
    becomeRoot(state, now, 'moving', [offer.contact, former])
    return
  }
  let tallest = -1
  let towards: number | undefined
  for (const child of state.children) {
    const height = child.summary?.height ?? 0
    if (child.peer !== offer.contact.peer && height > tallest) {
      tallest = height
      towards = child.session
    }
  }
  if (towards !== undefined) state.send(towards, offer)
}

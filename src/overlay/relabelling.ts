/**
 * Labels and the freeze. A node that loses its parent becomes the root of a fragment with a younger label, and may join
 * elsewhere only when its whole subtree has taken that label (overlay rule 2); this is why no cycle can arise.
 */
import type { EdgeEnd } from './effects.js'
import { type Contact, isOlder, type Label, MAX_CREATED_AT, type PeerKey, sameLabel } from './label.js'
import type { Freeze, Frozen, Relabel } from './messages.js'
import type { Parent, State } from './state.js'
import { MAX_PATH } from './wire.js'

/** An edge that ends within this many `dead` times after it was made was not worth making. */
export const STABLE_AFTER = 2

/** How many of the former ancestors are asked before any other peer. */
const MAX_HINTS = 3

/**
 * The parent is gone, or is being left. `hints` are asked first. Afterwards the node is a root, frozen until every
 * child has acknowledged the new label.
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
  state.beaconAt = now + (timers.beacon / 4) * random()
  state.edgeDown(parent.session, parent.peer, reason)
  if (state.label.createdAt >= MAX_CREATED_AT) {
    // No younger label exists (somebody lied about the time). Without children any label will do.
    for (const child of [...state.children]) {
      state.closeWithBye(child.session, 'violation')
      state.dropChild(now, child.session, 'violation')
    }
    state.label = { createdAt: Math.floor(now), root: self }
    return
  }
  relabel(state, now, { createdAt: Math.max(Math.floor(now), state.label.createdAt + 1), root: self }, 'freeze')
}

/** Takes a label and passes it on to all children, either freezing them or not. */
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

/** FREEZE or LABEL from the parent. Answers whether the parent told the truth, as far as can be seen. */
export function onParentLabel(
  state: State,
  now: number,
  message: Freeze | Relabel,
  { peer, session }: Parent
): boolean {
  const { kind, label, path } = message
  // A fragment that joins gets older, one that broke off gets younger, and nothing is joined before the freeze is over.
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

/** Ends the freeze when no child is waited for any more, or gives up those that never answer. */
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

/** The path of this node's children: only the root and the last two keep their addresses, the others are just names. */
export function ownPath(state: State): Contact[] {
  const above = state.path.map((contact, i) =>
    i === 0 || i === state.path.length - 1 ? contact : { peer: contact.peer, addresses: [] }
  )
  return [...above, state.self]
}

/** Whether a path runs from the label's root to the peer that sent it. */
export function isPathFrom(path: readonly Contact[], label: Label, sender: PeerKey): boolean {
  return path.length > 0 && path[0].peer === label.root && path[path.length - 1].peer === sender
}

/**
 * Whether this node stands in the path from above. Without children that means only that those below its former
 * incarnation have not noticed yet that it restarted; they will, and there is no cycle meanwhile.
 */
export function closesCycle(state: State, path: readonly Contact[]): boolean {
  return state.children.size > 0 && path.some(contact => contact.peer === state.settings.self)
}

/** A subtree may have silent peers at each level to wait for; deeper nodes lose patience first. */
function freezeTimeout(state: State): number {
  const { height } = state.children.summary(state.self)
  return state.settings.timers.dead * (2 + Math.min(height, 8))
}

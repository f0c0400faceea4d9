/**
 * The accepting side of a join: a JOIN is accepted, redirected or refused. Labels are compared again here, because the
 * joining peer may have dialled with outdated information.
 */
import type { SessionId } from './effects.js'
import { type Contact, isOlder, type Label, type PeerKey } from './label.js'
import type { Join, RefuseReason } from './messages.js'
import { becomeRoot, ownPath } from './relabelling.js'
import type { State } from './state.js'
import { MAX_PATH } from './wire.js'

/** Handles a JOIN; returns false if it violates the protocol. */
export function onJoin(state: State, now: number, session: SessionId, peer: PeerKey, message: Join): boolean {
  const { label, addresses } = message
  if (label.root !== peer) return false
  dropStale(state, now, peer, label)
  state.inbound.delete(session)
  // The joining peer may be the root of an older tree fragment that this node can join.
  state.book.recordLabel(now, label, addresses)
  if (!isOlder(state.label, label) || state.parent?.peer === peer) refuse(state, session, 'younger')
  else if (state.path.length + 2 > MAX_PATH) refuse(state, session, 'depth')
  else if (state.isOverloaded(now)) shed(state, session)
  else if (state.children.full) redirect(state, session, state.children.redirectTarget())
  else accept(state, now, session, peer, addresses)
  return true
}

/**
 * Drops edges from before a restart of the peer: a root that sends JOIN holds no edge with this node. Only a parent may have
 * sent its JOIN before it accepted this node (both dialled at once), and then with the label of that acceptance.
 */
function dropStale(state: State, now: number, peer: PeerKey, label: Label): void {
  const { parent } = state
  const child = state.children.byPeer(peer)
  if (child !== undefined) {
    state.closeWithBye(child.session, 'replaced')
    state.dropChild(now, child.session, 'replaced')
  }
  if (parent?.peer === peer && isOlder(parent.accepted, label)) {
    state.closeWithBye(parent.session, 'replaced')
    becomeRoot(state, now, 'replaced')
  }
}

function accept(state: State, now: number, session: SessionId, peer: PeerKey, addresses: readonly string[]): void {
  if (state.attempt?.peer === peer) {
    // Both dialled at once. Labels are ordered, so only this direction is legal. There is one session per pair.
    state.closeWithBye(state.attempt.session, 'unneeded')
    state.attempt = undefined
  }
  const times = { since: now, lastReceived: now, roundTrip: 0 }
  state.children.add({ session, peer, addresses, ...times, summary: undefined, redirected: 0 })
  state.send(session, { kind: 'accept', label: state.label, path: ownPath(state) })
  state.push({ kind: 'edge-up', session, peer })
  state.summaryChanged(now)
}

/** An overloaded node passes the peer on to a free slot below it, if there is one. */
function shed(state: State, session: SessionId): void {
  const slot = state.children.redirectSlot()
  if (slot === undefined) refuse(state, session, 'busy')
  else redirect(state, session, slot)
}

function redirect(state: State, session: SessionId, target: Contact | undefined): void {
  if (target === undefined) return
  const { peer, addresses } = target
  state.send(session, { kind: 'redirect', contact: { peer, addresses } })
  state.push({ kind: 'close', session, reason: 'redirected' })
}

function refuse(state: State, session: SessionId, reason: RefuseReason): void {
  const root = state.path[0] ?? state.self
  state.send(session, { kind: 'refuse', reason, label: state.label, rootAddresses: root.addresses })
  state.push({ kind: 'close', session, reason: 'refused' })
}

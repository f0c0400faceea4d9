/**
 * Joining as the acceptor: a JOIN is accepted, redirected or refused. The labels are compared here once more, because
 * what the newcomer believed when it dialled may be outdated.
 */
import type { SessionId } from './effects.js'
import { isOlder, type Label, type PeerKey } from './label.js'
import type { Join, RefuseReason } from './messages.js'
import { becomeRoot, ownPath } from './relabelling.js'
import type { State } from './state.js'
import { MAX_PATH } from './wire.js'

/** Answers a JOIN; false if it breaks the rules. */
export function onJoin(state: State, now: number, session: SessionId, peer: PeerKey, message: Join): boolean {
  const { label, addresses } = message
  if (label.root !== peer) return false
  dropStale(state, now, peer, label)
  state.inbound.delete(session)
  // The newcomer may itself be the root of an older fragment, for this one to join.
  state.book.recordLabel(now, label, addresses)
  if (!isOlder(state.label, label) || state.parent?.peer === peer) refuse(state, session, 'younger')
  else if (state.path.length + 2 > MAX_PATH) refuse(state, session, 'depth')
  else if (state.children.full) redirect(state, session)
  else accept(state, now, session, peer, addresses)
  return true
}

/**
 * A root that asks to join holds no edge with us: what we still hold is a leftover of before its restart. Only a parent
 * may have asked before it accepted us (both dialled at once), and then it asked with the label of that acceptance.
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
    // Both dialled at once; labels are ordered, so that only this direction can be legal. One session a pair.
    state.closeWithBye(state.attempt.session, 'unneeded')
    state.attempt = undefined
  }
  state.children.add({ session, peer, addresses, since: now, lastReceived: now, summary: undefined, redirected: 0 })
  state.send(session, { kind: 'accept', label: state.label, path: ownPath(state) })
  state.push({ kind: 'edge-up', session, peer })
  state.summaryChanged(now)
}

function redirect(state: State, session: SessionId): void {
  const child = state.children.redirectTarget()
  if (child === undefined) return
  child.redirected += 1
  state.send(session, { kind: 'redirect', contact: { peer: child.peer, addresses: child.addresses } })
  state.push({ kind: 'close', session, reason: 'redirected' })
}

function refuse(state: State, session: SessionId, reason: RefuseReason): void {
  const root = state.path[0] ?? state.self
  state.send(session, { kind: 'refuse', reason, label: state.label, rootAddresses: root.addresses })
  state.push({ kind: 'close', session, reason: 'refused' })
}

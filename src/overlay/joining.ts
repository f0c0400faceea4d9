/**
 * The joining side: which peer to ask, following redirects, becoming a child. Only an unfrozen root joins, with one attempt at a
 * time (overlay rule 1).
 *
 * The accepting side of a join: a JOIN is accepted, redirected or refused. Labels are compared again here, because the joining
 * peer may have dialled with outdated information.
 */

import type { Child } from './children.js'
import { MAX_PATH } from './codec.js'
import {
  type Accept,
  BASE_TRANSPORTS,
  type Contact,
  isOlder,
  type Join,
  type Label,
  type PeerKey,
  type Redirect,
  type Refuse,
  type RefuseReason,
  type SessionId,
  sameLabel,
  type Transports
} from './messages.js'
import { becomeRoot, becomeYounger, closesCycle, isPathFrom, ownPath, relabel } from './relabelling.js'
import type { Attempt, State } from './state.js'

/** Starts an attempt if the node may join and there is a peer to ask. */
export function seek(state: State, now: number): void {
  if (!maySeek(state)) return
  const excluded = (peer: PeerKey): boolean =>
    peer === state.settings.self || state.children.byPeer(peer) !== undefined || state.book.isBanned(now, peer)
  while (state.hints.length > 0) {
    const hint = state.hints.shift() as Contact
    if (!excluded(hint.peer) && !state.book.isWaiting(now, hint.peer)) {
      dial(state, now, hint, hint.peer, 0)
      return
    }
  }
  const target = state.book.choose(now, state.label, excluded)
  if (target !== undefined) dial(state, now, target, target.peer, 0)
}

/** Time at which `seek` may next start an attempt if no other event occurs. */
export function nextSeek(state: State, now: number): number {
  return maySeek(state) ? state.book.nextDue(now, state.label) : Number.POSITIVE_INFINITY
}

function maySeek(state: State): boolean {
  return state.isRoot && state.freeze === undefined && state.attempt === undefined
}

function dial(state: State, now: number, to: Contact, origin: PeerKey, hops: number): void {
  const session = state.newSession()
  state.attempt = { session, peer: to.peer, origin, hops, until: now + state.joinTimeout }
  const addresses = to.addresses.length > 0 ? to.addresses : state.book.contact(to.peer).addresses
  state.push({ kind: 'open', session, peer: to.peer, addresses })
}

/** The session of the attempt is open: sends JOIN. */
export function onOpened(state: State, attempt: Attempt): void {
  const { dials } = state.settings
  const limit = dials === BASE_TRANSPORTS ? undefined : { dials }
  state.send(attempt.session, { kind: 'join', label: state.label, addresses: state.self.addresses, ...limit })
}

/** The attempt failed; its session has ended or been closed. */
export function joinFailed(state: State, now: number): void {
  const { attempt } = state
  if (attempt === undefined) return
  state.attempt = undefined
  state.book.joinFailed(now, attempt.peer)
  if (attempt.origin !== attempt.peer) state.book.joinFailed(now, attempt.origin)
}

/** Becomes a child. Returns false if the ACCEPT violates the protocol. */
export function onAccept(state: State, now: number, attempt: Attempt, message: Accept): boolean {
  const { label, path } = message
  if (!isOlder(label, state.label) || !isPathFrom(path, label, attempt.peer)) return false
  if (closesCycle(state, path)) {
    state.closeWithBye(attempt.session, 'violation')
    joinFailed(state, now)
    return true
  }
  state.attempt = undefined
  state.hints = []
  const { session, peer } = attempt
  state.parent = { session, peer, since: now, accepted: label, lastReceived: now, roundTrip: 0 }
  state.path = path
  relabel(state, now, label, 'label')
  state.push({ kind: 'edge-up', session: attempt.session, peer: attempt.peer })
  state.sendSummary(now)
  return true
}

export function onRedirect(state: State, now: number, attempt: Attempt, { contact }: Redirect): void {
  state.push({ kind: 'close', session: attempt.session, reason: 'redirected' })
  const hops = attempt.hops + 1
  const isUnusable =
    hops > state.settings.limits.hops ||
    contact.peer === state.settings.self ||
    state.children.byPeer(contact.peer) !== undefined ||
    state.book.isBanned(now, contact.peer) ||
    state.book.isDistrusted(now, contact.peer)
  if (isUnusable) joinFailed(state, now)
  else dial(state, now, contact, attempt.origin, hops)
}

export function onRefuse(state: State, now: number, attempt: Attempt, message: Refuse): void {
  const { label, reason, rootAddresses } = message
  state.push({ kind: 'close', session: attempt.session, reason: 'refused' })
  if (reason === 'depth') {
    joinFailed(state, now)
    return
  }
  state.attempt = undefined
  if (reason === 'busy') {
    // It is alive, so it remains the root to join: this node sends no beacons meanwhile.
    state.book.refused(now, attempt.peer, false)
    if (attempt.origin !== attempt.peer) state.book.refused(now, attempt.origin, false)
    return
  }
  const same = sameLabel(label, state.label)
  if (!same && label.root !== state.settings.self && label.root !== attempt.peer) {
    // Ask the refuser's root: it either learns about this older tree fragment or is older itself.
    state.book.addCandidate(label.root, rootAddresses)
    state.book.recordLabel(now, label, rootAddresses)
  }
  // The refuser cannot join a peer that it cannot dial. A root dials the transports of its own addresses.
  const dials =
    label.root === attempt.peer ? BASE_TRANSPORTS | state.settings.transportsOf(rootAddresses) : BASE_TRANSPORTS
  if (!same && !state.isReachable(dials) && isOlder(state.label, label)) becomeYounger(state, now, label)
  if (isOlder(label, state.label)) {
    state.book.joinFailed(now, attempt.peer)
  } else {
    state.book.refused(now, attempt.peer, same)
    if (attempt.origin !== attempt.peer) state.book.refused(now, attempt.origin, same)
  }
}

/** Handles a JOIN; returns false if it violates the protocol. */
export function onJoin(state: State, now: number, session: SessionId, peer: PeerKey, message: Join): boolean {
  const { label } = message
  const leaf = state.book.isDistrusted(now, peer) ? undefined : state.children.distrusted()
  if (label.root !== peer) return false
  dropStale(state, now, peer, label)
  state.inbound.delete(session)
  // The joining peer may be the root of an older tree fragment that this node can join.
  if (state.canDial(message.addresses)) state.book.recordLabel(now, label, message.addresses)
  if (!isOlder(state.label, label) || state.parent?.peer === peer) refuse(state, session, 'younger')
  else if (state.path.length + 2 > MAX_PATH) refuse(state, session, 'depth')
  else if (state.isOverloaded(now)) passOn(state, session, state.children.redirectSlot(dialsOf(message)))
  else if (!state.children.full) accept(state, now, session, peer, message)
  else if (leaf !== undefined && leaf.peer !== peer) replace(state, now, leaf, session, peer, message)
  else if ((dialsOf(message) & BASE_TRANSPORTS) === BASE_TRANSPORTS) onFull(state, now, session, peer, message)
  else onFullForLimited(state, now, session, peer, message)
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

function accept(state: State, now: number, session: SessionId, peer: PeerKey, message: Join): void {
  if (state.attempt?.peer === peer) {
    // Both dialled at once. Labels are ordered, so only this direction is legal. There is one session per pair.
    state.closeWithBye(state.attempt.session, 'unneeded')
    state.attempt = undefined
  }
  const times = { since: now, lastReceived: now, roundTrip: 0 }
  const { addresses } = message
  const isDistrusted = state.book.isDistrusted(now, peer)
  const unknown = { summary: undefined, redirected: 0 }
  state.children.add({ session, peer, addresses, dials: dialsOf(message), ...times, isDistrusted, ...unknown })
  state.send(session, { kind: 'accept', label: state.label, path: ownPath(state) })
  state.push({ kind: 'edge-up', session, peer })
  state.summaryChanged(now)
}

/**
 * A full node passes a peer under Node.js to a child. If the peer can dial no slot below, as the leaves are tabs, a root yields: it
 * joins the peer, by the edge that is reserved for a parent. If it has just done so without success, the peer takes the place of a tab. Below
 * the root it takes the place of a tab that finds another one at a tab.
 */
function onFull(state: State, now: number, session: SessionId, peer: PeerKey, message: Join): void {
  const dials = dialsOf(message)
  const slot = state.children.redirectSlot(dials)
  if (slot === undefined && !state.isLate && state.canDial(message.addresses)) {
    const mayMove = now - state.movedAt >= state.settings.timers.moveHold
    const mayYield = state.isRoot && !state.freeze && !state.attempt
    if (mayYield && mayMove && becomeYounger(state, now, message.label)) {
      state.movedAt = now
      refuse(state, session, 'younger')
      return
    }
    const tab = mayYield || mayMove ? state.children.tab(!mayYield) : undefined
    if (tab !== undefined) {
      if (!mayYield) state.movedAt = now
      replace(state, now, tab, session, peer, message)
      return
    }
  }
  passOn(state, session, slot ?? state.children.redirectTarget(dials))
}

/**
 * A full node passes a peer that can dial only some transports to a slot that it can dial, or else makes room for it: a child that
 * can dial everything moves elsewhere.
 */
function onFullForLimited(state: State, now: number, session: SessionId, peer: PeerKey, message: Join): void {
  const slot = state.children.redirectSlot(dialsOf(message))
  const child = slot === undefined ? state.children.movable() : undefined
  if (child !== undefined) replace(state, now, child, session, peer, message)
  else passOn(state, session, slot ?? state.children.redirectTarget(dialsOf(message)))
}

/** The peer takes the place of a child, which becomes a root and joins another peer. */
function replace(state: State, now: number, child: Child, session: SessionId, peer: PeerKey, message: Join): void {
  state.closeWithBye(child.session, 'moving')
  state.dropChild(now, child.session, 'moving')
  accept(state, now, session, peer, message)
}

function dialsOf({ dials = BASE_TRANSPORTS }: Join): Transports {
  return dials
}

/** Redirects the peer; without a target it is refused and asks again later. */
function passOn(state: State, session: SessionId, target: Contact | undefined): void {
  if (target === undefined) {
    refuse(state, session, 'busy')
    return
  }
  const { peer, addresses } = target
  state.send(session, { kind: 'redirect', contact: { peer, addresses } })
  state.push({ kind: 'close', session, reason: 'redirected' })
}

function refuse(state: State, session: SessionId, reason: RefuseReason): void {
  const root = state.path[0] ?? state.self
  state.send(session, { kind: 'refuse', reason, label: state.label, rootAddresses: root.addresses })
  state.push({ kind: 'close', session, reason: 'refused' })
}

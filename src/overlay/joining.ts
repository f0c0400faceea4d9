/**
 * The joining side: which peer to ask, following redirects, becoming a child. Only an unfrozen root joins, with one attempt at
 * a time (overlay rule 1).
 */
import { type Contact, isOlder, type PeerKey, sameLabel } from './label.js'
import type { Accept, Redirect, Refuse } from './messages.js'
import { BASE_TRANSPORTS } from './reachability.js'
import { becomeYounger, closesCycle, isPathFrom, relabel } from './relabelling.js'
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

/** When `seek` may next start an attempt if no other event occurs. */
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

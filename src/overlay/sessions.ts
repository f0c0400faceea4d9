/**
 * The sessions of a node: which messages are legal on each, and the consequences of its end. The rules for the messages are
 * in the other modules.
 */

import { type Child, sameSummary } from './children.js'
import { joinFailed, onAccept, onJoin, onRedirect, onRefuse } from './joining.js'
import type { ByeReason, EdgeEnd, OverlayMessage, PeerKey, SessionId } from './messages.js'
import { becomeRoot, onFrozen, onOffer, onParentLabel } from './relabelling.js'
import type { Attempt, Parent, State } from './state.js'

/** A session and the peer at its other end. */
export interface Neighbour {
  readonly session: SessionId
  readonly peer: PeerKey
}

/** All sessions of a node: edges, the join attempt, and inbound sessions without a JOIN. */
export function heldSessions(state: State): Neighbour[] {
  const { children, parent, attempt, inbound } = state
  const held: Neighbour[] = [...children]
  if (parent !== undefined) held.push(parent)
  if (attempt !== undefined) held.push(attempt)
  for (const [session, { peer }] of inbound) held.push({ session, peer })
  return held
}

/** Passes a message to its handler. A peer that sends an illegal message is banned. */
export function dispatch(state: State, now: number, session: SessionId, message: OverlayMessage): void {
  const { parent, attempt } = state
  const child = state.children.get(session)
  const waiting = state.inbound.get(session)
  const sender = heldSessions(state).find(held => held.session === session)?.peer
  if (sender === undefined) return
  if (message.kind === 'bye') {
    state.push({ kind: 'close', session, reason: 'goodbye' })
    release(state, now, session, message.reason)
    return
  }
  let legal = false
  if (child !== undefined) legal = onChildMessage(state, now, child, message)
  else if (parent?.session === session) legal = onParentMessage(state, now, parent, message)
  else if (attempt?.session === session) legal = onAcceptorMessage(state, now, attempt, message)
  else if (waiting !== undefined) legal = message.kind === 'join' && onJoin(state, now, session, sender, message)
  if (!legal) banPeer(state, now, sender, 'violation')
}

function onChildMessage(state: State, now: number, child: Child, message: OverlayMessage): boolean {
  child.lastReceived = now
  if (message.kind === 'frozen') {
    onFrozen(state, child.session, message)
    return true
  }
  if (message.kind !== 'up') return false
  const { slot } = message.summary
  const isUsable = slot !== undefined && !state.book.isDistrusted(now, slot.contact.peer)
  const summary = { ...message.summary, slot: isUsable ? slot : undefined }
  if (!sameSummary(child.summary, summary)) state.summaryChanged(now)
  child.summary = summary
  // A tab sends its JOIN before a relay has given it addresses.
  if (slot?.contact.peer === child.peer) child.addresses = slot.contact.addresses
  child.redirected = 0
  return true
}

function onParentMessage(state: State, now: number, parent: Parent, message: OverlayMessage): boolean {
  parent.lastReceived = now
  switch (message.kind) {
    case 'label':
    case 'freeze':
      return onParentLabel(state, now, message, parent)
    case 'offer':
      onOffer(state, now, message)
      return true
    default:
      return message.kind === 'heartbeat'
  }
}

function onAcceptorMessage(state: State, now: number, attempt: Attempt, message: OverlayMessage): boolean {
  switch (message.kind) {
    case 'accept':
      return onAccept(state, now, attempt, message)
    case 'redirect':
      onRedirect(state, now, attempt, message)
      return true
    case 'refuse':
      onRefuse(state, now, attempt, message)
      return true
    default:
      return false
  }
}

/** Ends a session with a BYE. */
export function endSession(state: State, now: number, session: SessionId, reason: ByeReason): void {
  state.closeWithBye(session, reason)
  release(state, now, session, reason)
}

/** Drops a session that has ended, and handles the consequences. */
export function release(state: State, now: number, session: SessionId, reason: EdgeEnd): void {
  if (state.parent?.session === session) becomeRoot(state, now, reason)
  else if (state.attempt?.session === session) joinFailed(state, now)
  else if (!state.inbound.delete(session)) state.dropChild(now, session, reason)
}

/** Ends all sessions with a peer that violated the protocol, and bans it. */
export function banPeer(state: State, now: number, peer: PeerKey, reason: 'violation' | 'banned'): void {
  for (const held of heldSessions(state)) {
    if (held.peer !== peer) continue
    state.closeWithBye(held.session, 'violation')
    release(state, now, held.session, reason)
  }
  state.book.ban(now, peer)
  if (state.book.isDistrusted(now, peer)) forgetSlots(state, now, peer)
}

/** No joining peer is passed on to free places of this peer that children have reported. */
function forgetSlots(state: State, now: number, peer: PeerKey): void {
  for (const child of state.children) {
    if (child.summary?.slot?.contact.peer !== peer) continue
    child.summary = { ...child.summary, slot: undefined }
    state.summaryChanged(now)
  }
}

/** A peer is proven hostile: it may stay as a child without children, and this node does not stay below it. */
export function distrustPeer(state: State, now: number, peer: PeerKey): void {
  state.book.distrust(peer)
  const child = state.children.byPeer(peer)
  if (child !== undefined) {
    child.isDistrusted = true
    state.summaryChanged(now)
  }
  forgetSlots(state, now, peer)
  for (const held of [state.parent, state.attempt])
    if (held?.peer === peer) endSession(state, now, held.session, 'moving')
}

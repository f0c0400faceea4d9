/**
 * One peer's end of the tree protocol: events in, effects out. No clock, no randomness, no I/O of its own, so that the
 * same code runs over the simulated network and over libp2p.
 */
import { offerSlot } from './balancing.js'
import type { Effect, SessionId } from './effects.js'
import { nextSeek, onOpened, seek } from './joining.js'
import { isOlder, type Label, type PeerKey } from './label.js'
import type { Beacon, OverlayMessage, Summary } from './messages.js'
import { encodableAddresses, type OverlayOptions } from './options.js'
import { completeFreeze, STABLE_AFTER } from './relabelling.js'
import { banPeer, dispatch, endSession, heldSessions, type Neighbour, release } from './sessions.js'
import { State } from './state.js'

/** What a node knows of itself, for status displays and for checks. */
export interface OverlayView {
  readonly label: Label
  readonly parent: Neighbour | undefined
  readonly children: readonly Neighbour[]
  /** From the root to the parent; empty at a root. */
  readonly path: readonly PeerKey[]
  /** Edges up to the root. */
  readonly depth: number
  /** Waiting for children to take a younger label. */
  readonly frozen: boolean
  /** Whom this root is asking to become its parent. */
  readonly joining: PeerKey | undefined
  readonly subtree: Summary
}

/**
 * The overlay state machine (docs/protocol-overlay.md): "the older fragment wins, freeze before graft".
 *
 * Every event takes `now` (see `OverlayOptions.now`) and may leave effects behind: after each, carry out what
 * `takeEffects` gives, in order, and call `tick` at `nextDeadline` at the latest. Sessions are numbered by the node that
 * holds the end; messages of a session must arrive in order, and only after `opened` at the end that dialled.
 */
export class OverlayNode {
  readonly #state: State

  /** @throws {OverlayOptionError} */
  constructor(options: OverlayOptions) {
    this.#state = new State(options)
  }

  /** Own addresses, as sent with JOINs and beacons from now on. Those beyond the wire's limits are left out. */
  setAddresses(addresses: readonly string[]): void {
    this.#state.self = { peer: this.#state.settings.self, addresses: encodableAddresses(addresses) }
  }

  /** A peer that may be worth joining, though nothing is known of its label (bootstrap list, new connection). */
  candidate(now: number, peer: PeerKey, addresses: readonly string[] = []): void {
    const state = this.#state
    if (state.hasLeft || peer === state.settings.self) return
    state.book.addCandidate(peer, addresses)
    state.beaconSoon(now)
    this.#advance(now)
  }

  /** A peer is not to be dialled any more. */
  forget(peer: PeerKey): void {
    this.#state.book.forget(peer)
  }

  /** A beacon heard by gossip, known to come from `beacon.label.root`. */
  beacon(now: number, beacon: Beacon): void {
    const state = this.#state
    const { label, addresses } = beacon
    if (state.hasLeft || label.root === state.settings.self) return
    state.book.recordLabel(now, label, addresses)
    // A younger root that speaks has perhaps not heard us yet.
    if (state.isRoot && isOlder(state.label, label)) state.beaconSoon(now)
    this.#advance(now)
  }

  /** A peer has opened a session to us. Answers the session's number, or undefined if it must be closed unread. */
  inbound(now: number, peer: PeerKey): SessionId | undefined {
    const { book, inbound, hasLeft, settings } = this.#state
    const isRefused = hasLeft || peer === settings.self || book.isBanned(now, peer)
    if (isRefused || inbound.size >= settings.limits.inbound) return undefined
    const session = this.#state.newSession()
    inbound.set(session, { peer, until: now + settings.timers.join })
    return session
  }

  /** The session asked for by an `open` effect stands. */
  opened(now: number, session: SessionId): void {
    const { attempt } = this.#state
    if (attempt?.session === session) onOpened(this.#state, attempt)
    this.#advance(now)
  }

  /** A session has ended without our doing, or could not be opened. */
  closed(now: number, session: SessionId): void {
    release(this.#state, now, session, 'closed')
    this.#advance(now)
  }

  /** A decoded message. Those of sessions already given up are ignored. */
  receive(now: number, session: SessionId, message: OverlayMessage): void {
    dispatch(this.#state, now, session, message)
    this.#advance(now)
  }

  /** A peer misbehaved on a level that only the driver sees (invalid frames): cut it off, for longer each time. */
  ban(now: number, peer: PeerKey): void {
    if (!this.#state.hasLeft) banPeer(this.#state, now, peer, 'banned')
    this.#advance(now)
  }

  /** Leaves the overlay with a goodbye to every neighbour. Nothing happens in this node afterwards. */
  leave(now: number): void {
    const state = this.#state
    if (state.hasLeft) return
    for (const { session } of heldSessions(state)) {
      state.closeWithBye(session, 'leaving')
      if (state.parent?.session === session) {
        state.edgeDown(session, state.parent.peer, 'leaving')
        state.parent = undefined
      } else state.dropChild(now, session, 'leaving')
    }
    state.attempt = undefined
    state.inbound.clear()
    state.path = []
    state.freeze = undefined
    state.hasLeft = true
  }

  /** Does what is due. Call it at `nextDeadline`, or at least every quarter of a second. */
  tick(now: number): void {
    const state = this.#state
    if (state.hasLeft) return
    const { timers, random } = state.settings
    for (const child of [...state.children]) {
      if (now - child.lastReceived >= timers.dead) endSession(state, now, child.session, 'silent')
      else if (now - child.since >= STABLE_AFTER * timers.dead) state.book.edgeLasted(child.peer)
    }
    if (state.parent !== undefined && now - state.parent.lastReceived >= timers.dead) {
      endSession(state, now, state.parent.session, 'silent')
    }
    if (state.attempt !== undefined && now >= state.attempt.until)
      endSession(state, now, state.attempt.session, 'timeout')
    for (const [session, { until }] of [...state.inbound]) if (now >= until) endSession(state, now, session, 'timeout')
    this.#advance(now)
    if (now >= state.heartbeatAt) {
      state.heartbeatAt = now + state.jitter(timers.heartbeat, 0.1)
      for (const child of state.children) state.send(child.session, { kind: 'heartbeat' })
      state.sendSummary(now)
      offerSlot(state, now)
    } else if (now >= state.summaryAt) state.sendSummary(now)
    if (now >= state.beaconAt) {
      state.beaconAt = now + timers.beacon * (0.5 + random())
      if (state.isRoot) {
        state.beaconSentAt = now
        state.push({ kind: 'beacon', beacon: { label: state.label, addresses: state.self.addresses } })
      }
    }
  }

  /** When `tick` has something to do, in the terms of `now`; Infinity after `leave`. */
  nextDeadline(now: number): number {
    const state = this.#state
    if (state.hasLeft) return Number.POSITIVE_INFINITY
    const { dead } = state.settings.timers
    let next = Math.min(state.heartbeatAt, state.summaryAt, state.beaconAt, nextSeek(state, now))
    for (const child of state.children) next = Math.min(next, child.lastReceived + dead)
    for (const { until } of state.inbound.values()) next = Math.min(next, until)
    if (state.parent !== undefined) next = Math.min(next, state.parent.lastReceived + dead)
    if (state.attempt !== undefined) next = Math.min(next, state.attempt.until)
    if (state.freeze !== undefined) next = Math.min(next, state.freeze.until)
    return next
  }

  /** The effects since the last call, in the order in which they are to be carried out. */
  takeEffects(): Effect[] {
    return this.#state.takeEffects()
  }

  view(): OverlayView {
    const { label, parent, children, path, freeze, attempt, self } = this.#state
    return {
      label,
      parent: parent && { session: parent.session, peer: parent.peer },
      children: [...children].map(({ session, peer }) => ({ session, peer })),
      path: path.map(contact => contact.peer),
      depth: path.length,
      frozen: freeze !== undefined,
      joining: attempt?.peer,
      subtree: children.summary(self)
    }
  }

  /** What may follow from any event: a freeze that is over, and then a join. */
  #advance(now: number): void {
    const state = this.#state
    if (state.hasLeft) return
    completeFreeze(state, now)
    seek(state, now)
  }
}

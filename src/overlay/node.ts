/**
 * One peer's side of the tree protocol: events in, effects out. It has no clock, no randomness and no I/O, so the simulated
 * network and libp2p run the same code.
 */

import { nextSeek, onOpened, seek } from './joining.js'
import {
  type Beacon,
  type Effect,
  isOlder,
  type Label,
  type OverlayMessage,
  type PeerKey,
  type SessionId,
  type Summary
} from './messages.js'
import { encodableAddresses, type OverlayOptions } from './options.js'
import { completeFreeze, offerSlot, STABLE_AFTER } from './relabelling.js'
import { banPeer, dispatch, distrustPeer, endSession, heldSessions, type Neighbour, release } from './sessions.js'
import { State } from './state.js'

/** State of a node, for status displays and checks. */
export interface OverlayView {
  readonly label: Label
  readonly parent: Neighbour | undefined
  readonly children: readonly Neighbour[]
  /** From the root to the parent; empty at a root. */
  readonly path: readonly PeerKey[]
  /** Number of edges to the root. */
  readonly depth: number
  /** Whether it waits for children to acknowledge a younger label. */
  readonly frozen: boolean
  /** The peer that this root is asking to become its parent. */
  readonly joining: PeerKey | undefined
  readonly subtree: Summary
}

/**
 * The overlay state machine (docs/reference/protocol-overlay.md): "the older fragment wins, freeze before graft".
 *
 * Every event takes the time `now` (see `OverlayOptions.now`). After each event, execute the effects from `takeEffects` in
 * order, and call `tick` at `nextDeadline` at the latest. Each end numbers its own sessions. The messages of a session must
 * arrive in order, at the dialling end only after `opened`.
 */
export class OverlayNode {
  readonly #state: State

  /** @throws {OverlayOptionError} */
  constructor(options: OverlayOptions) {
    this.#state = new State(options)
  }

  /** Sets the addresses sent with JOINs and beacons. Addresses that exceed the limits of the wire format are left out. */
  setAddresses(addresses: readonly string[]): void {
    this.#state.self = { peer: this.#state.settings.self, addresses: encodableAddresses(addresses) }
  }

  /** Adds a peer that may be worth joining although its label is unknown (bootstrap list, new connection). */
  candidate(now: number, peer: PeerKey, addresses: readonly string[] = []): void {
    const state = this.#state
    if (state.hasLeft || peer === state.settings.self) return
    state.book.addCandidate(peer, addresses)
    state.beaconsOften(now)
    state.beaconSoon(now)
    this.#advance(now)
  }

  /** Stops dialling a peer. */
  forget(peer: PeerKey): void {
    this.#state.book.forget(peer)
  }

  /** A beacon arrived, published by `beacon.label.root`. */
  beacon(now: number, beacon: Beacon): void {
    const state = this.#state
    const { label, addresses, interval } = beacon
    if (state.hasLeft || label.root === state.settings.self || !state.canDial(addresses)) return
    state.book.recordLabel(now, label, addresses, interval)
    // A younger root may not have received this node's beacon yet.
    if (isOlder(state.label, label)) state.beaconSoon(now)
    this.#advance(now)
  }

  /** A peer opened a session. Returns its number, or undefined if it must be closed unread. */
  inbound(now: number, peer: PeerKey): SessionId | undefined {
    const { book, inbound, hasLeft, settings } = this.#state
    const isRefused = hasLeft || peer === settings.self || book.isBanned(now, peer)
    if (isRefused || inbound.size >= settings.limits.inbound) return undefined
    const session = this.#state.newSession()
    inbound.set(session, { peer, until: now + this.#state.joinTimeout })
    return session
  }

  /** The session of an `open` effect is open. */
  opened(now: number, session: SessionId): void {
    const { attempt } = this.#state
    if (attempt?.session === session) onOpened(this.#state, attempt)
    this.#advance(now)
  }

  /** A session ended without a `close` effect, or could not be opened. */
  closed(now: number, session: SessionId): void {
    release(this.#state, now, session, 'closed')
    this.#advance(now)
  }

  /** A decoded message arrived. Messages of sessions that have ended are ignored. */
  receive(now: number, session: SessionId, message: OverlayMessage): void {
    dispatch(this.#state, now, session, message)
    this.#advance(now)
  }

  /**
   * Bytes arrived on a session, even if no message is complete yet.
   * @param roundTrip measured round trip in ms; timers allow for it
   */
  bytesReceived(now: number, session: SessionId, roundTrip: number): void {
    const { parent, children } = this.#state
    const neighbour = children.get(session) ?? (parent?.session === session ? parent : undefined)
    if (neighbour === undefined) return
    neighbour.lastReceived = Math.max(neighbour.lastReceived, now)
    neighbour.roundTrip = roundTrip
  }

  /** How late this node's timers have run recently, in ms. It waits longer for others, and makes no voluntary changes. */
  setLateness(ms: number): void {
    this.#state.lateness = ms
  }

  /** This node did not run for `ms` milliseconds, so the silence of others during that time does not count. */
  stalled(ms: number): void {
    this.#state.postpone(ms)
  }

  /** Bans a peer for a violation that only the driver detects (invalid frames), for longer each time. */
  ban(now: number, peer: PeerKey): void {
    if (!this.#state.hasLeft) banPeer(this.#state, now, peer, 'banned')
    this.#advance(now)
  }

  /** A peer is proven hostile. It remains without the trust of this node. */
  distrust(now: number, peer: PeerKey): void {
    const state = this.#state
    if (peer === state.settings.self) return
    if (!state.hasLeft) distrustPeer(state, now, peer)
    this.#advance(now)
  }

  /** The peers that have violated the protocol repeatedly, or are proven hostile. They get no children and are not chosen as parents. */
  distrusted(now: number): PeerKey[] {
    return this.#state.book.distrusted(now)
  }

  /** Leaves the overlay with a BYE to every neighbour. The node ignores all later events, unless it returns. */
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

  /** Returns after `leave`, as a root without children. */
  rejoin(now: number): void {
    if (!this.#state.hasLeft) return
    this.#state.begin(now)
    this.#advance(now)
  }

  /** Performs due actions. Call it at `nextDeadline`, or at least every 250 ms. */
  tick(now: number): void {
    const state = this.#state
    if (state.hasLeft) return
    const { timers } = state.settings
    for (const child of [...state.children]) {
      if (now >= state.deadAt(child)) endSession(state, now, child.session, 'silent')
      else if (now - child.since >= STABLE_AFTER * timers.dead) state.book.edgeLasted(child.peer)
    }
    if (state.parent !== undefined && now >= state.deadAt(state.parent)) {
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
    if (now >= state.beaconAt) state.sendBeacon(now)
  }

  /** Time at which `tick` must be called next, on the clock of `now`; Infinity after `leave`. */
  nextDeadline(now: number): number {
    const state = this.#state
    if (state.hasLeft) return Number.POSITIVE_INFINITY
    let next = Math.min(state.heartbeatAt, state.summaryAt, state.beaconAt, nextSeek(state, now))
    for (const child of state.children) next = Math.min(next, state.deadAt(child))
    for (const { until } of state.inbound.values()) next = Math.min(next, until)
    if (state.parent !== undefined) next = Math.min(next, state.deadAt(state.parent))
    if (state.attempt !== undefined) next = Math.min(next, state.attempt.until)
    if (state.freeze !== undefined) next = Math.min(next, state.freeze.until)
    return next
  }

  /** The effects since the last call, in order of execution. */
  takeEffects(): Effect[] {
    return this.#state.takeEffects()
  }

  /** The session towards the root of the tree; 'self' at the root, undefined after `leave`. */
  get towardsRoot(): SessionId | 'self' | undefined {
    const { parent, hasLeft } = this.#state
    return hasLeft ? undefined : (parent?.session ?? 'self')
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

  /** Transitions that any event can enable: the end of a freeze, then a join. */
  #advance(now: number): void {
    const state = this.#state
    if (state.hasLeft) return
    completeFreeze(state, now)
    seek(state, now)
  }
}

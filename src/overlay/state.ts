/**
 * State of an overlay node, and elementary operations on it. The rules of the protocol are functions over this state:
 * `relabelling` (freeze and labels), `joining`, `accepting`, `balancing` (voluntary moves).
 */
import { ChildTable } from './children.js'
import {
  ALL_TRANSPORTS,
  type ByeReason,
  type Contact,
  type EdgeEnd,
  type Effect,
  type Label,
  type OverlayMessage,
  type PeerKey,
  type SessionId,
  type Transports
} from './messages.js'
import { applyDefaults, encodableAddresses, type OverlayOptions, type OverlaySettings } from './options.js'
import { PeerBook } from './peer-book.js'

export interface Parent {
  readonly session: SessionId
  readonly peer: PeerKey
  readonly since: number
  /** The label of its ACCEPT. */
  readonly accepted: Label
  lastReceived: number
  /** Last measured round trip, in ms. */
  roundTrip: number
}

/** Longest round trip that timers account for, in ms. It bounds how long a silent peer is waited for. */
const MAX_ROUND_TRIP = 2000
/** Maximum lateness of its own timers that a node accounts for, in ms, and the factor by which it extends time limits. */
const MAX_LATENESS = 2500
const PATIENCE = 8
/** Lateness above which a node makes no voluntary changes, in ms. */
const LATE = 250

/** The current step (dial, JOIN, answer) of a join. */
export interface Attempt {
  readonly session: SessionId
  readonly peer: PeerKey
  /** First peer of a chain of redirects; the backoff applies to it as well. */
  readonly origin: PeerKey
  readonly hops: number
  until: number
}

/** Children that have not answered FROZEN yet. */
interface FreezeWait {
  readonly waiting: Set<SessionId>
  until: number
}

export class State {
  readonly settings: OverlaySettings
  readonly children: ChildTable
  readonly book: PeerBook
  /** Inbound sessions without a JOIN. */
  readonly inbound = new Map<SessionId, { readonly peer: PeerKey; until: number }>()
  self: Contact
  label!: Label
  /** From the root down to the parent; empty at a root. */
  path: readonly Contact[] = []
  parent: Parent | undefined
  freeze: FreezeWait | undefined
  attempt: Attempt | undefined
  /** Peers to ask first after the loss of the parent, nearest ancestor first. */
  hints: Contact[] = []
  hasLeft = false
  /** How late its timers have run recently, in ms. */
  lateness = 0
  /** Interval of the next beacon. */
  beaconInterval!: number
  /** Times at which actions are due. */
  heartbeatAt = 0
  summaryAt = Number.POSITIVE_INFINITY
  beaconAt = 0
  offerAt = 0
  /** Times at which actions were last performed. */
  summarySentAt = Number.NEGATIVE_INFINITY
  beaconSentAt = Number.NEGATIVE_INFINITY
  movedAt = Number.NEGATIVE_INFINITY
  #effects: Effect[] = []
  #lastSession = 0

  constructor(options: OverlayOptions) {
    this.settings = applyDefaults(options)
    const { self, degree, transportsOf, timers, limits, random } = this.settings
    this.children = new ChildTable(degree - 1, transportsOf)
    this.book = new PeerBook(timers, limits.knownPeers, random)
    this.self = { peer: self, addresses: encodableAddresses(options.addresses ?? []) }
    this.begin(options.now)
  }

  /** Makes the node a root without children. */
  begin(now: number): void {
    const { self, timers } = this.settings
    this.label = { createdAt: Math.max(Math.floor(now), (this.label?.createdAt ?? 0) + 1), root: self }
    this.heartbeatAt = now + this.jitter(timers.heartbeat, 0.1)
    this.beaconInterval = timers.beacon
    this.beaconAt = now
    this.offerAt = now + 2 * timers.heartbeat
    this.hasLeft = false
  }

  /** Postpones all that depends on the silence of others. */
  postpone(ms: number): void {
    for (const child of this.children) child.lastReceived += ms
    for (const waiting of this.inbound.values()) waiting.until += ms
    if (this.parent) this.parent.lastReceived += ms
    if (this.attempt) this.attempt.until += ms
    if (this.freeze) this.freeze.until += ms
  }

  get isRoot(): boolean {
    return this.parent === undefined
  }

  /** Whether peers that dial these transports can dial this node. */
  isReachable(dials: Transports): boolean {
    return (this.settings.transportsOf(this.self.addresses) & dials) !== 0
  }

  /** Whether this node can dial a peer with these addresses. */
  canDial(addresses: readonly string[]): boolean {
    return (this.settings.transportsOf(addresses) & this.settings.dials) !== 0
  }

  /** Time at which a neighbour that stays silent is considered dead. On a line with losses, retransmissions take several round trips. */
  deadAt({ lastReceived, roundTrip }: { readonly lastReceived: number; readonly roundTrip: number }): number {
    return lastReceived + this.settings.timers.dead + 4 * Math.min(roundTrip, MAX_ROUND_TRIP) + this.patience
  }

  /** Addition to time limits in ms: if this node's machine is overloaded, those of the others may be as well. */
  get patience(): number {
    return PATIENCE * Math.min(this.lateness, MAX_LATENESS)
  }

  /** Whether this node's timers run late. */
  get isLate(): boolean {
    return this.lateness > LATE
  }

  /**
   * Whether the node accepts no further child: its timers run late by more than a heartbeat, and its newest edge has not yet lasted
   * as long as they are late. So a node on an overloaded machine takes on one neighbour at a time.
   */
  isOverloaded(now: number): boolean {
    if (this.lateness <= this.settings.timers.heartbeat) return false
    const since = Math.max(this.parent?.since ?? 0, ...[...this.children].map(child => child.since))
    return now - since < Math.min(this.lateness, MAX_LATENESS)
  }

  /** Timeout of one step of a join, in ms. Opening a session takes six round trips. */
  get joinTimeout(): number {
    let roundTrip = this.parent?.roundTrip ?? 0
    for (const child of this.children) roundTrip = Math.max(roundTrip, child.roundTrip)
    return this.settings.timers.join + 8 * Math.min(roundTrip, MAX_ROUND_TRIP) + this.patience
  }

  newSession(): SessionId {
    this.#lastSession += 1
    return this.#lastSession
  }

  /** `wait` ± `spread` of it. */
  jitter(wait: number, spread: number): number {
    return wait * (1 - spread + 2 * spread * this.settings.random())
  }

  push(effect: Effect): void {
    this.#effects.push(effect)
  }

  takeEffects(): Effect[] {
    const effects = this.#effects
    this.#effects = []
    return effects
  }

  send(session: SessionId, message: OverlayMessage): void {
    this.push({ kind: 'send', session, message })
  }

  /** Sends BYE and closes the session. The caller drops it from the state. */
  closeWithBye(session: SessionId, reason: ByeReason): void {
    this.send(session, { kind: 'bye', reason })
    this.push({ kind: 'close', session, reason })
  }

  edgeDown(session: SessionId, peer: PeerKey, reason: EdgeEnd): void {
    this.push({ kind: 'edge-down', session, peer, reason })
  }

  /** Drops a child. If it has not answered FREEZE, the end of its edge counts as the answer. */
  dropChild(now: number, session: SessionId, reason: EdgeEnd): void {
    const child = this.children.get(session)
    if (child === undefined) return
    this.children.delete(session)
    this.freeze?.waiting.delete(session)
    this.edgeDown(session, child.peer, reason)
    this.summaryChanged(now)
  }

  /** Schedules an UP soon, at most four per heartbeat. A root announces itself more often again. */
  summaryChanged(now: number): void {
    this.beaconsOften(now)
    const soonest = Math.max(now, this.summarySentAt + this.settings.timers.heartbeat / 4)
    this.summaryAt = Math.min(this.summaryAt, soonest)
  }

  sendSummary(now: number): void {
    this.summaryAt = Number.POSITIVE_INFINITY
    if (this.parent === undefined) return
    this.summarySentAt = now
    this.send(this.parent.session, { kind: 'up', summary: this.children.summary(this.self, !this.isOverloaded(now)) })
  }

  /** Something has changed: the interval of beacons begins at its minimum again. */
  beaconsOften(now: number): void {
    const { beacon } = this.settings.timers
    this.beaconInterval = beacon
    if (this.isRoot) this.beaconAt = Math.min(this.beaconAt, now + this.jitter(beacon, 0.5))
  }

  /** Schedules a beacon as soon as the rate limit allows. A root that can join an older root publishes none. */
  beaconSoon(now: number): void {
    if (!this.isRoot || this.book.knowsOlder(now, this.label)) return
    const soonest = Math.max(now, this.beaconSentAt + this.beaconInterval / 16)
    this.beaconAt = Math.min(this.beaconAt, soonest)
  }

  /** Publishes a beacon if this node is a root that others can join, and schedules the next one. */
  sendBeacon(now: number): void {
    const { beacon, beaconMax } = this.settings.timers
    const isNeeded = this.isReachable(ALL_TRANSPORTS) && !this.book.knowsOlder(now, this.label)
    if (!isNeeded) this.beaconInterval = beacon
    const interval = this.beaconInterval
    this.beaconAt = this.isRoot ? now + this.jitter(interval, 0.5) : Number.POSITIVE_INFINITY
    if (!this.isRoot || !isNeeded) return
    this.beaconSentAt = now
    this.beaconInterval = Math.min(2 * interval, beaconMax)
    this.push({
      kind: 'beacon',
      beacon: { label: this.label, addresses: this.self.addresses, interval: Math.ceil(interval) }
    })
  }
}

/**
 * Runs the overlay state machine on a network: its effects become dials, control messages and beacons, and reports of the network
 * become its events. The peer receives the tree edges that open and close, and their frames.
 */
import { periodically, untilTurn, WHEEL_MS } from '#platform'
import {
  dialled,
  type Log,
  type Network,
  type PeerTarget,
  type Session,
  UnreachablePeerError
} from '../network/index.js'
import {
  BASE_TRANSPORTS,
  decodeBeacon,
  decodeMessage,
  type Effect,
  encodeBeacon,
  encodeMessage,
  OverlayNode,
  type OverlayView
} from '../overlay/index.js'
import { OverlayClock } from './overlay-clock.js'
import { oneOfEachFirst, transportsNamed, transportsOf } from './reachability.js'

export interface EdgeHandlers {
  up(edge: number, peer: string): void
  /** @param hasLeft whether the peer has left the network */
  down(edge: number, peer: string, reason: string, hasLeft: boolean): void
  /** The session towards the root of the tree, 'self' at the root; undefined while this peer has left the tree. */
  towardsRoot(edge: number | 'self' | undefined): void
  /** The peer answered, but is incompatible with this one. */
  refused(peer: string, reason: string): void
  /** A message about statuses. @throws StatusError if it is malformed */
  status(edge: number, bytes: Uint8Array): void
  /** An announcement of a predictor. @throws Error if it is something else */
  announcement(edge: number, bytes: Uint8Array): void
  /** A fragment of a frame that is not complete yet. */
  fragment(edge: number, bytes: Uint8Array): void
  /** Resolves when the frame has been consumed and the next one may be sent. */
  frame(edge: number, bytes: Uint8Array): Promise<void>
}

export interface EdgesOptions {
  readonly network: Network
  /** Maximum number of tree neighbours. */
  readonly degree: number
  readonly handlers: EdgeHandlers
  readonly log: Log
}

/** Maximum time between two ticks, in milliseconds. */
const MAX_SLEEP_MS = 1000

export class Edges {
  readonly #options: EdgesOptions
  readonly #overlay: OverlayNode
  readonly #sessions = new Map<number, Session>()
  /** The sessions that are tree edges. */
  readonly #up = new Set<number>()
  readonly #dials = new Map<number, AbortController>()
  /** The last error of each peer, so that the same error is logged once. */
  readonly #lastErrors = new Map<string, string>()
  readonly #clock = new OverlayClock()
  /** Own addresses that the overlay knows. */
  #addresses: readonly string[] | undefined
  /** As the handlers know it. */
  #towardsRoot: number | 'self' | undefined
  readonly #stopTurns: () => void
  /** For what is due before the next turn of the wheel. */
  #timer: NodeJS.Timeout | undefined
  /** When the overlay must run, and when it will: with a turn of the wheel, unless it is urgent. */
  #deadline = Number.POSITIVE_INFINITY
  #due = Number.POSITIVE_INFINITY
  #stopped = false

  constructor(options: EdgesOptions) {
    this.#options = options
    const { network, degree } = options
    this.#overlay = new OverlayNode({
      self: network.id,
      addresses: oneOfEachFirst(network.addresses),
      dials: transportsNamed(dialled),
      transportsOf,
      degree,
      random: Math.random,
      now: this.#clock.now
    })
    this.#stopTurns = periodically(WHEEL_MS, () => this.catchUp())
    network.onSession(session => this.#inbound(session))
    this.#flushEffects()
  }

  view(): OverlayView {
    return this.#overlay.view()
  }

  get #hasLeft(): boolean {
    return this.#overlay.towardsRoot === undefined
  }

  /** Ids of the tree neighbours. */
  get neighbours(): string[] {
    return [...this.#up].flatMap(edge => this.#sessions.get(edge)?.peer ?? [])
  }

  /** Peers that have violated the protocol repeatedly, or are proven hostile. */
  get distrusted(): string[] {
    return this.#overlay.distrusted(this.#clock.now)
  }

  /** Adds a peer that this one may join. */
  candidate({ id, addresses }: { readonly id: string; readonly addresses: readonly string[] }): void {
    const dials = transportsNamed(dialled)
    // A tab that this peer cannot dial asks it to join. A tab may reach others at addresses that they do not know.
    if ((dials & BASE_TRANSPORTS) === BASE_TRANSPORTS && (transportsOf(addresses) & dials) === 0) return
    this.#refreshAddresses()
    this.#overlay.candidate(this.#now(), id, addresses)
    this.#flushEffects()
  }

  /** A peer is no longer connected. Only peers under Node.js are dialled again: a tab that is back connects itself. */
  lost({ id, addresses }: { readonly id: string; readonly addresses: readonly string[] }): void {
    if ((transportsOf(addresses) & BASE_TRANSPORTS) === 0) this.#overlay.forget(id)
  }

  /** Handles a beacon from gossip. @throws OverlayMessageError if it is malformed */
  receiveBeacon(from: string, bytes: Uint8Array): void {
    const beacon = decodeBeacon(bytes)
    // Only the root may send beacons of its fragment.
    if (beacon.label.root !== from) return
    this.#overlay.beacon(this.#now(), beacon)
    this.#flushEffects()
  }

  /** Sends a frame over an edge. Rejects when the session ends first. */
  send(edge: number, bytes: Uint8Array): Promise<void> {
    const session = this.#sessions.get(edge)
    return session ? session.sendFrame(bytes) : Promise.reject(new Error('the edge is closed'))
  }

  /** Sends a fragment of the next frame. Rejects when the session ends before the transport has accepted it. */
  sendFragment(edge: number, bytes: Uint8Array): Promise<void> {
    const session = this.#sessions.get(edge)
    return session ? session.sendFragment(bytes) : Promise.reject(new Error('the edge is closed'))
  }

  /** Sends an announcement of a predictor over an edge, ahead of frames. */
  sendAnnouncement(edge: number, bytes: Uint8Array): void {
    this.#sessions.get(edge)?.sendAnnouncement(bytes)
  }

  /** Sends a message about statuses over an edge. */
  sendStatus(edge: number, bytes: Uint8Array): void {
    this.#sessions.get(edge)?.sendStatus(bytes)
  }

  /** Resolves when the frames that are arriving from tree neighbours have been consumed, or their sessions have ended. */
  async arrived(): Promise<void> {
    await Promise.all([...this.#up].map(edge => this.#sessions.get(edge)?.arrived()))
  }

  /** Closes the session of a peer that sent invalid data, and bans the peer for a while. */
  ban(edge: number, reason: string): void {
    const peer = this.#sessions.get(edge)?.peer
    if (peer === undefined) return
    this.#options.network.ban(peer, reason)
    this.#overlay.ban(this.#now(), peer)
    this.#flushEffects()
  }

  /** A peer is proven hostile: it gets no children, and this one leaves it if it is the parent. */
  distrust(peer: string): void {
    this.#overlay.distrust(this.#now(), peer)
    this.#flushEffects()
  }

  /** Does what is due and late: browsers delay the timers of hidden tabs, but not the messages of their threads. */
  catchUp(): void {
    if (!this.#stopped && this.#clock.now >= this.#due) this.#run()
  }

  /** Leaves the tree, and accepts no neighbours until `rejoin`. */
  leave(): void {
    this.#overlay.leave(this.#now())
    this.#flushEffects()
  }

  /** Returns to the tree after `leave`. */
  rejoin(): void {
    this.#overlay.rejoin(this.#now())
    this.#flushEffects()
  }

  /** Notifies the neighbours and stops. */
  stop(): void {
    this.#overlay.leave(this.#now())
    this.#flushEffects()
    this.#stopped = true
    this.#stopTurns()
    clearTimeout(this.#timer)
    for (const dial of this.#dials.values()) dial.abort()
  }

  /** The time of an event. First reports to the overlay for how long this process was stalled, and which sessions received bytes. */
  #now(): number {
    const stall = this.#clock.takeStall()
    if (stall > 0) {
      this.#overlay.stalled(stall)
      this.#options.log('debug', `this process did not run for ${Math.round(stall)} ms`, { ms: stall })
    }
    this.#overlay.setLateness(this.#clock.lateness)
    const { now } = this.#clock
    for (const edge of this.#up) {
      const session = this.#sessions.get(edge)
      if (session === undefined) continue
      this.#overlay.bytesReceived(now - (performance.now() - session.lastReceivedAt), edge, session.roundTripMs)
    }
    return now
  }

  /** Addresses appear when HTTP listens, or a relay accepts this peer. */
  #refreshAddresses(): void {
    const { addresses } = this.#options.network
    if (addresses === this.#addresses) return
    this.#addresses = addresses
    this.#overlay.setAddresses(oneOfEachFirst(addresses))
  }

  #inbound(session: Session): void {
    const number = this.#stopped ? undefined : this.#overlay.inbound(this.#now(), session.peer)
    if (number === undefined) session.close('no further sessions are accepted now')
    else this.#attach(number, session)
    this.#flushEffects()
  }

  #attach(number: number, session: Session): void {
    this.#sessions.set(number, session)
    session.start({
      control: bytes => {
        this.#overlay.receive(this.#now(), number, decodeMessage(bytes))
        this.#flushEffects()
      },
      status: bytes => {
        if (this.#up.has(number)) this.#options.handlers.status(number, bytes)
      },
      announcement: bytes => {
        if (this.#up.has(number)) this.#options.handlers.announcement(number, bytes)
      },
      fragment: bytes => {
        if (this.#up.has(number)) this.#options.handlers.fragment(number, bytes)
      },
      // A frame may still arrive after this end has closed the edge.
      frame: async bytes => {
        if (this.#up.has(number)) await this.#options.handlers.frame(number, bytes)
      },
      close: reason => {
        if (!this.#sessions.delete(number)) return
        this.#options.log('debug', `session with ${session.peer} ended: ${reason}`, { peer: session.peer })
        this.#overlay.closed(this.#now(), number)
        // Before the effects, whose reason says only that the session has closed.
        this.#down(number, session.peer, reason)
        this.#flushEffects()
      }
    })
  }

  async #dial(number: number, target: PeerTarget): Promise<void> {
    const abort = new AbortController()
    this.#dials.set(number, abort)
    try {
      const session = await this.#options.network.open(target, abort.signal)
      if (abort.signal.aborted) return session.close('no longer needed')
      this.#attach(number, session)
      this.#lastErrors.delete(session.peer)
      this.#overlay.opened(this.#now(), number)
    } catch (error) {
      if (abort.signal.aborted) return
      this.#report(target.id ?? '', error as Error)
      this.#overlay.closed(this.#now(), number)
    } finally {
      this.#dials.delete(number)
    }
    this.#flushEffects()
  }

  #report(peer: string, error: Error): void {
    const { message: reason } = error
    if (this.#lastErrors.get(peer) === reason) return
    if (this.#lastErrors.size > 1000) this.#lastErrors.clear()
    this.#lastErrors.set(peer, reason)
    this.#options.log('warn', reason, { peer })
    if (!(error instanceof UnreachablePeerError)) this.#options.handlers.refused(peer, reason)
  }

  #down(edge: number, peer: string, reason: string, hasLeft = false): void {
    if (this.#up.delete(edge)) this.#options.handlers.down(edge, peer, reason, hasLeft)
  }

  /** Executes the effects of the state machine, and schedules its next tick. */
  #flushEffects(): void {
    if (this.#stopped) return
    for (const effect of this.#overlay.takeEffects()) this.#execute(effect)
    const { towardsRoot } = this.#overlay
    if (towardsRoot !== this.#towardsRoot) this.#options.handlers.towardsRoot(towardsRoot)
    this.#towardsRoot = towardsRoot
    const { now } = this.#clock
    const deadline = this.#overlay.nextDeadline(now)
    if (deadline === this.#deadline) return
    this.#deadline = deadline
    clearTimeout(this.#timer)
    const wait = Math.min(MAX_SLEEP_MS, Math.max(0, deadline - now))
    const isUrgent = wait < WHEEL_MS
    this.#due = now + (isUrgent ? wait : untilTurn(wait))
    this.#clock.expect(this.#due)
    if (isUrgent) this.#timer = setTimeout(() => this.#run(), wait)
  }

  #run(): void {
    this.#clock.ran(this.#due)
    this.#deadline = Number.NaN
    this.#refreshAddresses()
    this.#overlay.tick(this.#now())
    this.#flushEffects()
  }

  #execute(effect: Effect): void {
    switch (effect.kind) {
      case 'open':
        void this.#dial(effect.session, { id: effect.peer, addresses: effect.addresses })
        break
      case 'send':
        this.#sessions.get(effect.session)?.sendControl(encodeMessage(effect.message))
        break
      case 'close': {
        this.#dials.get(effect.session)?.abort()
        const session = this.#sessions.get(effect.session)
        this.#sessions.delete(effect.session)
        session?.close(effect.reason)
        break
      }
      case 'beacon':
        this.#options.network.publish('beacon', encodeBeacon(effect.beacon))
        break
      case 'edge-up':
        if (!this.#sessions.has(effect.session)) break
        this.#up.add(effect.session)
        this.#options.handlers.up(effect.session, effect.peer)
        break
      case 'edge-down':
        // A silent peer's connection may be dead without libp2p noticing; the next dial would then reuse it.
        if (effect.reason === 'silent') this.#options.network.disconnect(effect.peer, 'no messages were received')
        // A peer that leaves has the same reason for all its edges.
        this.#down(effect.session, effect.peer, effect.reason, effect.reason === 'leaving' && !this.#hasLeft)
        break
      default:
        effect satisfies never
    }
  }
}

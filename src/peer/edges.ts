/**
 * The overlay state machine at work on a real network: its effects become dials, control messages and beacons, and what
 * the network reports becomes its events. Above it the peer sees tree edges come and go, and frames.
 */
import { type Log, type Network, type PeerTarget, type Session, UnreachablePeerError } from '../network/index.js'
import {
  decodeBeacon,
  decodeMessage,
  type Effect,
  encodeBeacon,
  encodeMessage,
  OverlayNode,
  type OverlayView
} from '../overlay/index.js'

export interface EdgeHandlers {
  up(edge: number, peer: string): void
  down(edge: number, peer: string, reason: string): void
  /** The peer answers, but it and this one do not learn together. */
  refused(peer: string, reason: string): void
  /** What goes ahead of a frame that is still to come. */
  part(edge: number, bytes: Uint8Array): void
  /** Resolves when the frame is consumed and the next may come. */
  frame(edge: number, bytes: Uint8Array): Promise<void>
}

export interface EdgesOptions {
  readonly network: Network
  /** Most tree neighbours. */
  readonly degree: number
  readonly handlers: EdgeHandlers
  readonly log: Log
}

interface OpenSession {
  readonly session: Session
  up: boolean
}

/** Longest sleep between two ticks, in milliseconds. */
const MAX_SLEEP_MS = 1000

export class Edges {
  readonly #options: EdgesOptions
  readonly #overlay: OverlayNode
  readonly #sessions = new Map<number, OpenSession>()
  readonly #dialling = new Map<number, AbortController>()
  /** The last refusal told of each peer, so that every reason is told once. */
  readonly #told = new Map<string, string>()
  readonly #epoch = Date.now() - performance.now()
  #timer: NodeJS.Timeout | undefined
  #stopped = false

  constructor(options: EdgesOptions) {
    this.#options = options
    const { network, degree } = options
    const addresses = network.addresses
    this.#overlay = new OverlayNode({ self: network.id, addresses, degree, random: Math.random, now: this.#now() })
    network.onSession(session => this.#inbound(session))
    this.#after()
  }

  view(): OverlayView {
    return this.#overlay.view()
  }

  /** Peers at the other ends of the tree edges. */
  get neighbours(): string[] {
    return [...this.#sessions.values()].filter(held => held.up).map(held => held.session.peer)
  }

  /** A peer that can perhaps be joined. */
  candidate({ id, addresses }: { readonly id: string; readonly addresses: readonly string[] }): void {
    this.#overlay.setAddresses(this.#options.network.addresses)
    this.#overlay.candidate(this.#now(), id, addresses)
    this.#after()
  }

  /** A beacon that gossip brought. Throws OverlayMessageError if it is none. */
  heard(from: string, bytes: Uint8Array): void {
    const beacon = decodeBeacon(bytes)
    // Only the root itself may speak for its fragment.
    if (beacon.label.root !== from) return
    this.#overlay.beacon(this.#now(), beacon)
    this.#after()
  }

  /** Sends a frame over an edge. Rejects when the session ends first. */
  send(edge: number, bytes: Uint8Array): Promise<void> {
    const held = this.#sessions.get(edge)
    return held ? held.session.sendFrame(bytes) : Promise.reject(new Error('the edge is gone'))
  }

  /** Sends what goes ahead of the next frame. Rejects when the session ends before the transport has taken it. */
  sendPart(edge: number, bytes: Uint8Array): Promise<void> {
    const held = this.#sessions.get(edge)
    return held ? held.session.sendFragment(bytes) : Promise.reject(new Error('the edge is gone'))
  }

  /** The other end sent something invalid: the session ends and the peer is left alone for a while. */
  penalise(edge: number, reason: string): void {
    const held = this.#sessions.get(edge)
    if (held === undefined) return
    const { peer } = held.session
    this.#options.network.ban(peer, reason)
    this.#overlay.ban(this.#now(), peer)
    this.#after()
  }

  /** Says goodbye to the neighbours. */
  stop(): void {
    this.#overlay.leave(this.#now())
    this.#after()
    this.#stopped = true
    clearTimeout(this.#timer)
    for (const dial of this.#dialling.values()) dial.abort()
  }

  #now(): number {
    return this.#epoch + performance.now()
  }

  #inbound(session: Session): void {
    const number = this.#stopped ? undefined : this.#overlay.inbound(this.#now(), session.peer)
    if (number === undefined) session.close('no further sessions are taken now')
    else this.#hold(number, session)
    this.#after()
  }

  #hold(number: number, session: Session): void {
    const held: OpenSession = { session, up: false }
    this.#sessions.set(number, held)
    session.start({
      control: bytes => {
        this.#overlay.receive(this.#now(), number, decodeMessage(bytes))
        this.#after()
      },
      fragment: bytes => {
        if (held.up) this.#options.handlers.part(number, bytes)
      },
      // A frame may still arrive after this end has given the edge up.
      frame: async bytes => {
        if (held.up) await this.#options.handlers.frame(number, bytes)
      },
      close: reason => {
        if (!this.#sessions.delete(number)) return
        this.#options.log('debug', `session with ${session.peer} ended: ${reason}`, { peer: session.peer })
        this.#overlay.closed(this.#now(), number)
        if (held.up) this.#options.handlers.down(number, session.peer, reason)
        held.up = false
        this.#after()
      }
    })
  }

  async #open(number: number, target: PeerTarget): Promise<void> {
    const abort = new AbortController()
    this.#dialling.set(number, abort)
    try {
      const session = await this.#options.network.open(target, abort.signal)
      if (abort.signal.aborted) return session.close('not needed any more')
      this.#hold(number, session)
      this.#told.delete(session.peer)
      this.#overlay.opened(this.#now(), number)
    } catch (error) {
      if (abort.signal.aborted) return
      this.#tell(target.id ?? '', error as Error)
      this.#overlay.closed(this.#now(), number)
    } finally {
      this.#dialling.delete(number)
    }
    this.#after()
  }

  #tell(peer: string, error: Error): void {
    const { message: reason } = error
    if (this.#told.get(peer) === reason) return
    if (this.#told.size > 1000) this.#told.clear()
    this.#told.set(peer, reason)
    this.#options.log('warn', reason, { peer })
    if (!(error instanceof UnreachablePeerError)) this.#options.handlers.refused(peer, reason)
  }

  /** Carries out what the state machine asks for, and sleeps until it needs the time. */
  #after(): void {
    if (this.#stopped) return
    for (const effect of this.#overlay.takeEffects()) this.#carryOut(effect)
    clearTimeout(this.#timer)
    const now = this.#now()
    const wait = Math.min(MAX_SLEEP_MS, Math.max(0, this.#overlay.nextDeadline(now) - now))
    this.#timer = setTimeout(() => {
      this.#overlay.tick(this.#now())
      this.#after()
    }, wait)
  }

  #carryOut(effect: Effect): void {
    switch (effect.kind) {
      case 'open':
        void this.#open(effect.session, { id: effect.peer, addresses: effect.addresses })
        break
      case 'send':
        this.#sessions.get(effect.session)?.session.sendControl(encodeMessage(effect.message))
        break
      case 'close': {
        this.#dialling.get(effect.session)?.abort()
        const held = this.#sessions.get(effect.session)
        this.#sessions.delete(effect.session)
        held?.session.close(effect.reason)
        break
      }
      case 'beacon':
        this.#options.network.publish('beacon', encodeBeacon(effect.beacon))
        break
      case 'edge-up': {
        const held = this.#sessions.get(effect.session)
        if (held === undefined) break
        held.up = true
        this.#options.handlers.up(effect.session, effect.peer)
        break
      }
      case 'edge-down': {
        const held = this.#sessions.get(effect.session)
        if (held) held.up = false
        // A silent peer's connection may be dead without libp2p's knowing, and the next dial would take it.
        if (effect.reason === 'silent') this.#options.network.disconnect(effect.peer, 'it fell silent')
        this.#options.handlers.down(effect.session, effect.peer, effect.reason)
        break
      }
      default:
        effect satisfies never
    }
  }
}

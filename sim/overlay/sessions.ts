/**
 * Sessions between overlay nodes, modelled on TCP connections: messages arrive in order until one end closes. When a process
 * ends, its machine closes the process's sessions. A machine that is down does not; when it is up again, it replies to messages
 * of unknown sessions with a close.
 */
import type { OverlayNode, OverlayView, SessionId } from '../../src/overlay/index.js'
import type { CheckedOverlayNode, OverlayEndpoint } from '../checkers/overlay.js'
import type { Population } from '../faults/schedule.js'
import type { Transport } from '../network/transport.js'
import type { SessionChannel } from '../wiring/wiring.js'

/** One end of a session, in one lifetime of its node, and the channel of its outgoing messages. */
interface Endpoint extends SessionChannel {
  readonly node: number
  lifetime: number
  /** Number that the overlay node at this end assigned; undefined until it has accepted the session. */
  number: SessionId | undefined
  isOpen: boolean
}

interface Session {
  readonly id: number
  /** The dialling end first. */
  readonly ends: readonly [Endpoint, Endpoint]
  /** Key of the dialling node, and the key that it dialled. */
  readonly dialler: string
  readonly dialledKey: string
}

type Side = 0 | 1

type SessionMessageKind = 'opened' | 'close' | 'overlay' | 'frame'

/** A message of a session. */
export interface SessionMessage {
  readonly kind: 'dial' | SessionMessageKind
  readonly session: Session
  /** The sending end. */
  readonly side: Side
  /** Bytes of the overlay, or a message of the algorithm. */
  readonly content?: unknown
  /** Bytes of the content on the wire. */
  readonly size?: number
}

/** The other end of a session. */
interface RemoteEndpoint {
  readonly node: number
  /** Number of the session at that end, if it has accepted the session. */
  readonly session: SessionId | undefined
  /** The session itself, the same object for both ends. */
  readonly link: object
}

/** Callbacks for the events at a node's end of a session. */
interface SessionHandlers {
  /** @returns the number assigned to the session, or undefined to refuse it */
  inbound(node: number, dialler: string): SessionId | undefined
  opened(node: number, number: SessionId): void
  closed(node: number, number: SessionId): void
  overlay(node: number, number: SessionId, bytes: Uint8Array): void
  frame(node: number, neighbour: number, content: unknown): void
}

export class Sessions {
  readonly #population: Population
  readonly #transport: Transport
  readonly #keys: readonly string[]
  readonly #handlers: SessionHandlers
  /** Open sessions of each node, by number. */
  readonly #open: Map<SessionId, { readonly session: Session; readonly side: Side }>[]
  /** Nodes whose machine is down. */
  readonly #poweredOff = new Set<number>()
  #count = 0

  /** @param keys current keys of the nodes */
  constructor(population: Population, transport: Transport, keys: readonly string[], handlers: SessionHandlers) {
    this.#population = population
    this.#transport = transport
    this.#keys = keys
    this.#handlers = handlers
    this.#open = keys.map(() => new Map())
  }

  start(node: number): void {
    this.#poweredOff.delete(node)
  }

  /** Call when a node's process ends. @param silently whether its machine is down as well */
  stop(node: number, silently: boolean): void {
    if (silently) this.#poweredOff.add(node)
    else for (const number of [...this.#open[node].keys()]) this.close(node, number)
    this.#open[node].clear()
  }

  /** Opens a session to a node. @param to the node that has, or had, the key */
  dial(node: number, number: SessionId, to: number, key: string): void {
    const local = createEndpoint(node, this.#population.lifetime(node), number)
    const session: Session = {
      id: ++this.#count,
      ends: [local, createEndpoint(to, 0, undefined)],
      dialler: this.#keys[node],
      dialledKey: key
    }
    this.#open[node].set(number, { session, side: 0 })
    this.#transmit({ kind: 'dial', session, side: 0 })
  }

  /** Number of the session for both ends; undefined if it is closed at this end. */
  id(node: number, number: SessionId): number | undefined {
    return this.#open[node].get(number)?.session.id
  }

  /** The other end of a node's session; undefined if it belongs to an earlier lifetime of its node. */
  remoteEndpoint(node: number, number: SessionId): RemoteEndpoint | undefined {
    const held = this.#open[node].get(number)
    if (held === undefined) return undefined
    const remote = held.session.ends[held.side === 0 ? 1 : 0]
    const isCurrent = remote.number === undefined || remote.lifetime === this.#population.lifetime(remote.node)
    return isCurrent ? { node: remote.node, session: remote.number, link: held.session } : undefined
  }

  send(node: number, number: SessionId, kind: 'overlay' | 'frame', content: unknown, size: number): void {
    const held = this.#open[node].get(number)
    if (held !== undefined) this.#transmit({ kind, ...held, content, size })
  }

  /** Closes this end. The other end is notified after all messages sent before. */
  close(node: number, number: SessionId): void {
    const held = this.#open[node].get(number)
    if (held === undefined) return
    this.#open[node].delete(number)
    held.session.ends[held.side].isOpen = false
    this.#transmit({ kind: 'close', ...held })
  }

  receive(message: SessionMessage): void {
    const { session, side } = message
    const target = session.ends[side === 0 ? 1 : 0]
    if (!target.isOpen || this.#poweredOff.has(target.node)) return
    if (message.kind === 'dial') this.#accept(session, target)
    else this.#handle(message, message.kind, target)
  }

  #handle({ session, side, content }: SessionMessage, kind: SessionMessageKind, target: Endpoint): void {
    const { node, number } = target
    const isKnown = number !== undefined && target.lifetime === this.#population.lifetime(node)
    if (kind === 'close' || !isKnown) target.isOpen = false
    if (!isKnown) {
      if (kind !== 'close') this.#transmit({ kind: 'close', session, side: side === 0 ? 1 : 0 })
      return
    }
    switch (kind) {
      case 'opened':
        this.#handlers.opened(node, number)
        break
      case 'close':
        this.#open[node].delete(number)
        this.#handlers.closed(node, number)
        break
      case 'overlay':
        this.#handlers.overlay(node, number, content as Uint8Array)
        break
      case 'frame':
        this.#handlers.frame(node, session.ends[side].node, content)
        break
      default:
        kind satisfies never
    }
  }

  /** Accepts or refuses a session. It is refused if no process with the dialled key is running. */
  #accept(session: Session, target: Endpoint): void {
    const { node } = target
    target.lifetime = this.#population.lifetime(node)
    if (this.#population.isAlive(node) && this.#keys[node] === session.dialledKey) {
      target.number = this.#handlers.inbound(node, session.dialler)
    }
    if (target.number === undefined) {
      target.isOpen = false
      this.#transmit({ kind: 'close', session, side: 1 })
    } else {
      this.#open[node].set(target.number, { session, side: 1 })
      this.#transmit({ kind: 'opened', session, side: 1 })
    }
  }

  #transmit(content: SessionMessage): void {
    const { session, side, size = 0 } = content
    const channel = session.ends[side]
    const to = session.ends[side === 0 ? 1 : 0].node
    this.#transport.send({ from: channel.node, to, content, isOverlay: true, lifetime: 0, channel }, size)
  }
}

function createEndpoint(node: number, lifetime: number, number: SessionId | undefined): Endpoint {
  return { node, lifetime, number, isOpen: true, lastArrival: 0, held: [] }
}

/** The state of a simulated overlay node. */
export class OverlayHost implements CheckedOverlayNode {
  readonly node: number
  /** Undefined while the node is down. */
  core: OverlayNode | undefined
  /** View after the last event, if the overlay is checked. */
  view: OverlayView | undefined
  /** The session of the newest tree edge with each neighbour. */
  readonly edges = new Map<number, SessionId>()
  /** Its session towards the root, as the algorithm knows it. */
  towardsRoot: OverlayNode['towardsRoot']
  /** Time of its next timer in virtual milliseconds. */
  wakeAt = Number.POSITIVE_INFINITY
  /** Minimum reading of its clock at `wakeAt`, so that rounding does not set it back. */
  deadline = 0
  /** Last reading of its clock. */
  clock = 0
  /** Reading of its clock when its process was stopped; undefined while it runs. */
  pausedAt: number | undefined
  /** Time at which something last arrived on each tree edge, by its clock without the time for which the process was stopped. */
  readonly heard = new Map<SessionId, number>()
  /** Total time for which the process was stopped. */
  stalled = 0
  readonly #keys: readonly string[]
  readonly #findRemote: (node: number, session: SessionId) => OverlayEndpoint | undefined

  /** @param keys current keys of all nodes */
  constructor(
    node: number,
    keys: readonly string[],
    findRemote: (node: number, session: SessionId) => OverlayEndpoint | undefined
  ) {
    this.node = node
    this.#keys = keys
    this.#findRemote = findRemote
  }

  get key(): string {
    return this.#keys[this.node]
  }

  remoteEndpoint(session: SessionId): OverlayEndpoint | undefined {
    return this.#findRemote(this.node, session)
  }

  /** Call when the node's process ends. */
  stop(): void {
    this.core = undefined
    this.view = undefined
    this.edges.clear()
    this.heard.clear()
    this.pausedAt = undefined
    this.wakeAt = Number.POSITIVE_INFINITY
  }
}

/**
 * Gossip of beacons: flooding over the initial links. A node receives a beacon over several links, so that a lost message
 * rarely matters, and forwards it the first time.
 */
export interface GossipMessage {
  readonly kind: 'gossip'
  readonly origin: number
  /** Number of the message among those of its origin. */
  readonly sequence: number
  readonly bytes: Uint8Array
}

export class Gossip {
  readonly #links: readonly (readonly number[])[]
  readonly #transport: Transport
  readonly #published: number[]
  /** For each node, the newest sequence number by origin. */
  readonly #seen: Map<number, number>[]

  constructor(links: readonly (readonly number[])[], transport: Transport) {
    this.#links = links
    this.#transport = transport
    this.#published = links.map(() => 0)
    this.#seen = links.map(() => new Map())
  }

  publish(node: number, bytes: Uint8Array): void {
    const sequence = ++this.#published[node]
    this.#forward(node, { kind: 'gossip', origin: node, sequence, bytes }, node)
  }

  /** Forwards a new message. @returns whether it is new to the node */
  receive(node: number, from: number, message: GossipMessage): boolean {
    const { origin, sequence } = message
    if (origin === node || sequence <= (this.#seen[node].get(origin) ?? 0)) return false
    this.#seen[node].set(origin, sequence)
    this.#forward(node, message, from)
    return true
  }

  #forward(node: number, message: GossipMessage, except: number): void {
    for (const to of this.#links[node]) {
      if (to === except) continue
      const envelope = { from: node, to, content: message, isOverlay: true, lifetime: 0, channel: undefined }
      this.#transport.send(envelope, message.bytes.length)
    }
  }
}

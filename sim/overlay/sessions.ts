/**
 * Sessions between nodes of the overlay, as TCP connections are: whatever is sent arrives, in order, until one end closes.
 * When a process ends, its machine closes what it held; a machine that is gone as well leaves the other ends waiting, and
 * once it is back it answers with a close what it no longer knows.
 */
import type { SessionId } from '../../src/overlay/index.js'
import type { Population } from '../faults/population.js'
import type { Lane } from '../network/message.js'
import type { Transport } from '../network/transport.js'

/** One end, in one life of its node, and the lane of what is sent from it. */
interface End extends Lane {
  readonly node: number
  life: number
  /** The number that the overlay node at this end gave it; undefined until it has taken the call. */
  number: SessionId | undefined
  isOpen: boolean
}

interface Session {
  readonly id: number
  /** First the end that dialled. */
  readonly ends: readonly [End, End]
  /** Who dialled whom. */
  readonly caller: string
  readonly called: string
}

type Side = 0 | 1

type Said = 'opened' | 'close' | 'overlay' | 'frame'

/** What travels on a session. */
export interface Parcel {
  readonly kind: 'dial' | Said
  readonly session: Session
  /** From which end. */
  readonly side: Side
  readonly bytes?: Uint8Array
}

/** The other end of a session. */
export interface Far {
  readonly node: number
  /** Its number there, if that end has taken it up. */
  readonly session: SessionId | undefined
  readonly link: object
}

/** Whom sessions tell of what happens at a node's end. */
export interface SessionHandlers {
  /** Answers the session's number, or undefined to refuse. */
  inbound(node: number, caller: string): SessionId | undefined
  opened(node: number, number: SessionId): void
  closed(node: number, number: SessionId): void
  overlay(node: number, number: SessionId, bytes: Uint8Array): void
  frame(node: number, neighbour: number, bytes: Uint8Array): void
}

export class Sessions {
  readonly #population: Population
  readonly #transport: Transport
  readonly #keys: readonly string[]
  readonly #handlers: SessionHandlers
  /** Open ends of each node, by their numbers. */
  readonly #open: Map<SessionId, { readonly session: Session; readonly side: Side }>[]
  /** Nodes whose machine is off. */
  readonly #dark = new Set<number>()
  #count = 0

  /** @param keys of the nodes at present */
  constructor(population: Population, transport: Transport, keys: readonly string[], handlers: SessionHandlers) {
    this.#population = population
    this.#transport = transport
    this.#keys = keys
    this.#handlers = handlers
    this.#open = keys.map(() => new Map())
  }

  start(node: number): void {
    this.#dark.delete(node)
  }

  /** The node's process is gone. @param silently with its machine */
  stop(node: number, silently: boolean): void {
    if (silently) this.#dark.add(node)
    else for (const number of [...this.#open[node].keys()]) this.close(node, number)
    this.#open[node].clear()
  }

  /** @param to the node that has or had the key */
  dial(node: number, number: SessionId, to: number, key: string): void {
    const near = end(node, this.#population.life(node), number)
    const session: Session = {
      id: ++this.#count,
      ends: [near, end(to, 0, undefined)],
      caller: this.#keys[node],
      called: key
    }
    this.#open[node].set(number, { session, side: 0 })
    this.#transmit({ kind: 'dial', session, side: 0 })
  }

  /** The session's number for both ends; undefined when this one no longer holds it. */
  id(node: number, number: SessionId): number | undefined {
    return this.#open[node].get(number)?.session.id
  }

  /** The other end of a session that a node holds, if it is of the present life of its node; `link` is the session itself. */
  across(node: number, number: SessionId): Far | undefined {
    const held = this.#open[node].get(number)
    if (held === undefined) return undefined
    const far = held.session.ends[held.side === 0 ? 1 : 0]
    const isPresent = far.number === undefined || far.life === this.#population.life(far.node)
    return isPresent ? { node: far.node, session: far.number, link: held.session } : undefined
  }

  send(node: number, number: SessionId, kind: 'overlay' | 'frame', bytes: Uint8Array): void {
    const held = this.#open[node].get(number)
    if (held !== undefined) this.#transmit({ kind, ...held, bytes })
  }

  /** Closes this end; the other end hears of it after what was sent before. */
  close(node: number, number: SessionId): void {
    const held = this.#open[node].get(number)
    if (held === undefined) return
    this.#open[node].delete(number)
    held.session.ends[held.side].isOpen = false
    this.#transmit({ kind: 'close', ...held })
  }

  receive(parcel: Parcel): void {
    const { session, side } = parcel
    const target = session.ends[side === 0 ? 1 : 0]
    if (!target.isOpen || this.#dark.has(target.node)) return
    if (parcel.kind === 'dial') this.#dialled(session, target)
    else this.#arrived(parcel, parcel.kind, target)
  }

  #arrived({ session, side, bytes }: Parcel, kind: Said, target: End): void {
    const { node, number } = target
    const isKnown = number !== undefined && target.life === this.#population.life(node)
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
        this.#handlers.overlay(node, number, bytes as Uint8Array)
        break
      case 'frame':
        this.#handlers.frame(node, session.ends[side].node, bytes as Uint8Array)
        break
      default:
        kind satisfies never
    }
  }

  /** A machine refuses whom no process of that key takes in. */
  #dialled(session: Session, target: End): void {
    const { node } = target
    target.life = this.#population.life(node)
    if (this.#population.isAlive(node) && this.#keys[node] === session.called) {
      target.number = this.#handlers.inbound(node, session.caller)
    }
    if (target.number === undefined) {
      target.isOpen = false
      this.#transmit({ kind: 'close', session, side: 1 })
    } else {
      this.#open[node].set(target.number, { session, side: 1 })
      this.#transmit({ kind: 'opened', session, side: 1 })
    }
  }

  #transmit(content: Parcel): void {
    const { session, side, bytes } = content
    const lane = session.ends[side]
    const to = session.ends[side === 0 ? 1 : 0].node
    this.#transport.send({ from: lane.node, to, content, isOverlay: true, life: 0, lane }, bytes?.length ?? 0)
  }
}

function end(node: number, life: number, number: SessionId | undefined): End {
  return { node, life, number, isOpen: true, lastArrival: 0, held: [] }
}

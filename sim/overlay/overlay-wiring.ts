/**
 * The tree as the overlay's own protocol builds and mends it: the OverlayNodes that real peers run, over simulated sessions
 * and gossip. Any node can dial any other whose key it has heard of; from the start it knows its links.
 */
import {
  decodeBeacon,
  decodeMessage,
  type Effect,
  encodeBeacon,
  encodeMessage,
  OverlayNode,
  type SessionId
} from '../../src/overlay/index.js'
import { type Across, OverlayChecker } from '../checkers/overlay.js'
import type { Violation } from '../checkers/violation.js'
import type { Random } from '../engine/random.js'
import type { Population } from '../faults/population.js'
import type { Message } from '../network/message.js'
import type { Transport } from '../network/transport.js'
import type { Connectable, Wiring } from '../wiring/wiring.js'
import { Gossip, type Rumour } from './gossip.js'
import { Host } from './host.js'
import { type Parcel, Sessions } from './sessions.js'

/** The overlay's default timers are for a heartbeat of so many milliseconds. */
const HEARTBEAT_MS = 1000

export interface OverlayWiringOptions {
  /** Most tree neighbours. */
  readonly degree: number
  /** Virtual milliseconds between heartbeats; all timers of the overlay are scaled with it. */
  readonly heartbeat: number
  /** Whom each node knows from the start. */
  readonly links: readonly (readonly number[])[]
  /** Keys of the nodes at present: a node whose disk is lost gets another. */
  readonly keys: readonly string[]
  readonly random: Random
  /** Whether the overlay's invariants are looked at after every event. */
  readonly isChecked: boolean
}

/** The run that the wiring is part of. */
export interface OverlayRun {
  readonly now: number
  readonly population: Population
  readonly transport: Transport
  readonly algorithm: Connectable & { receive(to: number, from: number, message: unknown): void }
  /** The tree has changed. */
  rewired(): void
  /** Calls `wake(node)` at that time. */
  wakeAt(time: number, node: number): void
}

export class OverlayWiring implements Wiring {
  readonly #options: OverlayWiringOptions
  readonly #run: OverlayRun
  readonly #hosts: readonly Host[]
  readonly #check: OverlayChecker | undefined
  readonly #sessions: Sessions
  readonly #gossip: Gossip
  /** Who has or had which key. */
  readonly #nodeOf = new Map<string, number>()

  constructor(options: OverlayWiringOptions, run: OverlayRun) {
    this.#options = options
    this.#run = run
    const across = (node: number, number: SessionId): Across | undefined => {
      const far = this.#sessions.across(node, number)
      return far && { ...far, site: this.#hosts[far.node] }
    }
    this.#hosts = options.keys.map((_, node) => new Host(node, options.keys, across))
    this.#check = options.isChecked ? new OverlayChecker(this.#hosts, options.degree) : undefined
    this.#gossip = new Gossip(options.links, run.transport)
    this.#sessions = new Sessions(run.population, run.transport, options.keys, {
      inbound: (node, caller) => this.#event(node, (core, now) => core.inbound(now, caller)),
      opened: (node, number) => this.#event(node, (core, now) => core.opened(now, number)),
      closed: (node, number) => this.#event(node, (core, now) => core.closed(now, number)),
      overlay: (node, number, bytes) =>
        this.#event(node, (core, now) => core.receive(now, number, decodeMessage(bytes))),
      frame: (node, neighbour, bytes) => run.algorithm.receive(node, neighbour, bytes)
    })
  }

  /** What keeps the nodes that are up from being one tree at rest, if they are checked and anything does. */
  notQuiescent(): Violation | undefined {
    return this.#check?.unsettled()
  }

  start(): void {
    for (const [node, key] of this.#options.keys.entries()) this.#nodeOf.set(key, node)
    for (const node of this.#hosts.keys()) if (this.#run.population.isAlive(node)) this.started(node)
  }

  started(node: number): void {
    const { degree, keys, links, random } = this.#options
    const host = this.#hosts[node]
    const draws = random.fork(`${node} ${this.#run.population.life(node)}`)
    this.#nodeOf.set(keys[node], node)
    this.#sessions.start(node)
    host.core = new OverlayNode({ self: keys[node], degree, random: () => draws.next(), now: this.#clock })
    if (this.#check) host.view = host.core.view()
    for (const link of links[node]) this.#event(node, (core, now) => core.candidate(now, keys[link]))
    this.#event(node, (core, now) => core.tick(now))
  }

  stopped(node: number, how: 'crash' | 'silent' | 'leave'): void {
    const host = this.#hosts[node]
    if (how === 'leave') this.#event(node, (core, now) => core.leave(now))
    this.#sessions.stop(node, how === 'silent')
    host.stop()
    this.#check?.stopped(host)
  }

  link(): void {}

  /** The connection breaks, and both ends hear of it. */
  unlink(from: number, to: number): void {
    const number = this.#hosts[from].edges.get(to)
    if (number === undefined) return
    this.#sessions.close(from, number)
    this.#event(from, (core, now) => core.closed(now, number))
  }

  restore(): void {}

  neighbours(node: number): Iterable<number> {
    return this.#hosts[node].edges.keys()
  }

  /** Frames of the algorithm go over the tree's sessions. */
  send(from: number, to: number, content: unknown): void {
    const number = this.#hosts[from].edges.get(to)
    if (number !== undefined) this.#sessions.send(from, number, 'frame', content as Uint8Array)
  }

  receive({ content, to, from }: Message): void {
    const said = content as Parcel | Rumour
    if (said.kind !== 'rumour') this.#sessions.receive(said)
    else if (this.#hosts[to].core !== undefined && this.#gossip.hear(to, from, said)) {
      this.#event(to, (core, now) => core.beacon(now, decodeBeacon(said.bytes)))
    }
  }

  wake(node: number): void {
    const host = this.#hosts[node]
    if (this.#run.now < host.wakeAt) return
    host.wakeAt = Number.POSITIVE_INFINITY
    host.clock = Math.max(host.clock, host.deadline)
    this.#event(node, (core, now) => core.tick(now))
  }

  /** The time as the cores know it: in whole milliseconds, so that sums and differences of times are exact. */
  get #clock(): number {
    return Math.floor((this.#run.now * HEARTBEAT_MS) / this.#options.heartbeat)
  }

  /** One event at one node: what it asks for is carried out, and its next waking planned. */
  #event<T>(node: number, event: (core: OverlayNode, now: number) => T): T | undefined {
    const host = this.#hosts[node]
    const { core } = host
    if (core === undefined) return undefined
    const now = Math.max(host.clock, this.#clock)
    host.clock = now
    const answer = event(core, now)
    for (const effect of core.takeEffects()) this.#perform(node, host, effect)
    this.#look(host, core)
    const deadline = Math.ceil(core.nextDeadline(now))
    const at = Math.max(this.#run.now, (deadline * this.#options.heartbeat) / HEARTBEAT_MS)
    if (at < host.wakeAt) {
      host.wakeAt = at
      host.deadline = deadline
      this.#run.wakeAt(at, node)
    }
    return answer
  }

  #look(host: Host, core: OverlayNode): void {
    if (this.#check === undefined || host.view === undefined) return
    const before = host.view
    host.view = core.view()
    this.#check.after(host, before, host.view)
    this.#check.afterFreeze(host, host.view)
  }

  #perform(node: number, { edges }: Host, effect: Effect): void {
    switch (effect.kind) {
      case 'open':
        this.#sessions.dial(node, effect.session, this.#nodeOf.get(effect.peer) as number, effect.peer)
        break
      case 'send':
        this.#sessions.send(node, effect.session, 'overlay', encodeMessage(effect.message))
        break
      case 'close':
        this.#sessions.close(node, effect.session)
        break
      case 'beacon':
        this.#gossip.publish(node, encodeBeacon(effect.beacon))
        break
      case 'edge-up': {
        const neighbour = this.#nodeOf.get(effect.peer) as number
        const id = this.#sessions.id(node, effect.session)
        // Under its lost key a node is heard of for a while beside its new one.
        if (id === undefined || this.#options.keys[neighbour] !== effect.peer) break
        edges.set(neighbour, effect.session)
        this.#run.algorithm.connect?.(node, neighbour, id)
        this.#run.rewired()
        break
      }
      case 'edge-down': {
        const neighbour = this.#nodeOf.get(effect.peer) as number
        // A newer session with the same neighbour may have taken its place.
        if (edges.get(neighbour) !== effect.session) break
        edges.delete(neighbour)
        this.#run.algorithm.disconnect?.(node, neighbour)
        this.#run.rewired()
        break
      }
      default:
        effect satisfies never
    }
  }
}

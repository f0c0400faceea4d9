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
  type OverlayView,
  type SessionId
} from '../../src/overlay/index.js'
import { OverlayChecker, type OverlaySite } from '../checkers/overlay.js'
import type { Violation } from '../checkers/violation.js'
import type { Random } from '../engine/random.js'
import type { Population } from '../faults/population.js'
import type { Message } from '../network/mail.js'
import type { Transport } from '../network/transport.js'
import type { Connectable, Wiring } from '../wiring.js'
import { Gossip, type Rumour } from './gossip.js'
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
  /** Calls `wake(node)` at that time. */
  wakeAt(time: number, node: number): void
}

interface Host {
  core: OverlayNode | undefined
  /** After the last event; only where invariants are looked at. */
  view: OverlayView | undefined
  /** The session of the newest tree edge with each neighbour. */
  readonly edges: Map<number, SessionId>
  wakeAt: number
  /** What the core's clock shows at the next waking, at least: rounding may not set it back. */
  deadline: number
  /** What the core's clock showed last. */
  clock: number
}

export class OverlayWiring implements Wiring {
  readonly #options: OverlayWiringOptions
  readonly #run: OverlayRun
  readonly #hosts: Host[]
  readonly #sessions: Sessions
  readonly #gossip: Gossip
  /** Who has or had which key. */
  readonly #nodeOf = new Map<string, number>()
  readonly #sites: readonly OverlaySite[]
  readonly #checker: OverlayChecker | undefined

  constructor(options: OverlayWiringOptions, run: OverlayRun) {
    this.#options = options
    this.#run = run
    this.#hosts = options.keys.map(() => ({
      core: undefined,
      view: undefined,
      edges: new Map(),
      wakeAt: Number.POSITIVE_INFINITY,
      deadline: 0,
      clock: 0
    }))
    this.#sites = this.#hosts.map((host, node) => this.#siteOf(host, node))
    this.#checker = options.isChecked ? new OverlayChecker(this.#sites, options.degree) : undefined
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

  /** A node's end of the overlay; undefined while the node is down. For checks. */
  view(node: number): OverlayView | undefined {
    return this.#hosts[node].core?.view()
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
    host.view = this.#checker && host.core.view()
    for (const link of links[node]) this.#event(node, (core, now) => core.candidate(now, keys[link]))
    this.#event(node, (core, now) => core.tick(now))
  }

  stopped(node: number, how: 'crash' | 'silent' | 'leave'): void {
    const host = this.#hosts[node]
    if (how === 'leave') this.#event(node, (core, now) => core.leave(now))
    this.#sessions.stop(node, how === 'silent')
    host.core = undefined
    host.view = undefined
    this.#checker?.stopped(this.#sites[node])
    host.edges.clear()
    host.wakeAt = Number.POSITIVE_INFINITY
  }

  /** Frames of the algorithm go over the tree's sessions. */
  send(from: number, to: number, content: unknown): void {
    const number = this.#hosts[from].edges.get(to)
    if (number !== undefined) this.#sessions.send(from, number, 'frame', content as Uint8Array)
  }

  link(): void {}

  /** The connection breaks: both ends hear of it. */
  unlink(from: number, to: number): void {
    const number = this.#hosts[from].edges.get(to)
    if (number === undefined) return
    this.#sessions.close(from, number)
    this.#event(from, (core, now) => core.closed(now, number))
  }

  unsettled(): Violation | undefined {
    return this.#checker?.unsettled()
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
    const deadline = Math.ceil(core.nextDeadline(now))
    const at = Math.max(this.#run.now, (deadline * this.#options.heartbeat) / HEARTBEAT_MS)
    if (at < host.wakeAt) {
      host.wakeAt = at
      host.deadline = deadline
      this.#run.wakeAt(at, node)
    }
    if (this.#checker && host.view && host.core) {
      const before = host.view
      host.view = core.view()
      this.#checker.after(this.#sites[node], before, host.view)
      this.#checker.afterFreeze(this.#sites[node], host.view)
    }
    return answer
  }

  #siteOf(host: Host, node: number): OverlaySite {
    const { keys } = this.#options
    const across = (number: SessionId) => this.#sessions.across(node, number)
    const siteAt = (other: number) => this.#sites[other]
    return {
      get key() {
        return keys[node]
      },
      get view() {
        return host.view
      },
      across(session) {
        const far = across(session)
        return far && { site: siteAt(far.node), session: far.number, link: far.session }
      }
    }
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
        break
      }
      case 'edge-down': {
        const neighbour = this.#nodeOf.get(effect.peer) as number
        // A newer session with the same neighbour may have taken its place.
        if (edges.get(neighbour) !== effect.session) break
        edges.delete(neighbour)
        this.#run.algorithm.disconnect?.(node, neighbour)
        break
      }
      default:
        effect satisfies never
    }
  }
}

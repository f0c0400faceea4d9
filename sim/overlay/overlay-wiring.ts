/**
 * The tree built and repaired by the overlay protocol: the OverlayNode of real peers over simulated sessions and gossip. A node
 * starts with the keys of its links and can dial any node whose key it has received.
 */
import {
  BASE_TRANSPORTS,
  decodeBeacon,
  decodeMessage,
  type Effect,
  encodeBeacon,
  encodeMessage,
  OverlayNode,
  type SessionId,
  TRANSPORT_TCP,
  TRANSPORT_WEBRTC,
  TRANSPORT_WEBSOCKET,
  type Transports,
  type TransportsOf
} from '../../src/overlay/index.js'
import type { HostileNodes } from '../checkers/invariant.js'
import { OverlayChecker, type OverlayEndpoint } from '../checkers/overlay.js'
import type { Random } from '../engine/random.js'
import type { Population } from '../faults/schedule.js'
import type { Transport } from '../network/transport.js'
import { Violation } from '../result.js'
import type { Connectable, Message, StopCause, Wiring } from '../wiring/wiring.js'
import { Gossip, type GossipMessage, OverlayHost, type SessionMessage, Sessions } from './sessions.js'

/** Heartbeat interval of the overlay's default timers. */
const HEARTBEAT_MS = 1000
const TRANSPORTS: Readonly<Record<string, Transports>> = {
  tcp: TRANSPORT_TCP,
  ws: TRANSPORT_WEBSOCKET,
  webrtc: TRANSPORT_WEBRTC
}
const transportsOf: TransportsOf = addresses => addresses.reduce((all, address) => all | TRANSPORTS[address], 0)
/** Silence after which a neighbour counts as dead, by these timers. */
const DEAD_MS = 4000

interface OverlayWiringOptions {
  /** Maximum number of tree neighbours. */
  readonly degree: number
  /** Number of nodes that other nodes cannot dial, the last ones, and of those that they can dial, the first ones. */
  readonly tabs: number
  readonly tabHosts: number
  /** Whether tabs dial each other. */
  readonly tabLinks: boolean
  /** Virtual milliseconds between heartbeats. All timers of the overlay are scaled with it. */
  readonly heartbeat: number
  /** The nodes that each node has links to at the start. */
  readonly links: readonly (readonly number[])[]
  /** Current keys of the nodes. A node that loses its disk gets a new key. */
  readonly keys: readonly string[]
  readonly random: Random
  /** Whether the overlay's invariants are checked after every event. */
  readonly isChecked: boolean
}

/** The run, as the wiring needs it. */
export interface OverlayRun {
  readonly now: number
  readonly population: Population
  readonly adversaries: HostileNodes
  readonly transport: Transport
  readonly algorithm: Connectable & { receive(to: number, from: number, message: unknown): void }
  /** Call when the tree has changed. */
  treeChanged(): void
  /** Calls `wake(node)` at `time`. */
  wakeAt(time: number, node: number): void
}

export class OverlayWiring implements Wiring {
  readonly #options: OverlayWiringOptions
  readonly #run: OverlayRun
  readonly #hosts: readonly OverlayHost[]
  readonly #checker: OverlayChecker | undefined
  readonly #sessions: Sessions
  readonly #gossip: Gossip
  /** The node of each current or former key. */
  readonly #nodeOf = new Map<string, number>()
  /** Links, as `from to`, on which bytes arrive although messages are held. */
  readonly #dripping = new Set<string>()
  /** Whether the current event is a timer of a node. */
  #isTimer = false

  constructor(options: OverlayWiringOptions, run: OverlayRun) {
    this.#options = options
    this.#run = run
    const findRemote = (node: number, number: SessionId): OverlayEndpoint | undefined => {
      const remote = this.#sessions.remoteEndpoint(node, number)
      return remote && { ...remote, node: this.#hosts[remote.node] }
    }
    this.#hosts = options.keys.map((_, node) => new OverlayHost(node, options.keys, findRemote))
    this.#checker = options.isChecked ? new OverlayChecker(this.#hosts, options.degree) : undefined
    this.#gossip = new Gossip(options.links, run.transport)
    this.#sessions = new Sessions(run.population, run.transport, options.keys, {
      inbound: (node, dialler) =>
        this.#canDial(this.#nodeOf.get(dialler) as number, node)
          ? this.#event(node, (core, now) => core.inbound(now, dialler))
          : undefined,
      opened: (node, number) => this.#event(node, (core, now) => core.opened(now, number)),
      closed: (node, number) => this.#event(node, (core, now) => core.closed(now, number)),
      overlay: (node, number, bytes) => {
        this.#hear(node, number)
        this.#event(node, (core, now) => core.receive(now, number, decodeMessage(bytes)))
      },
      frame: (node, neighbour, content) => {
        this.#receiveBytes(node, neighbour)
        run.algorithm.receive(node, neighbour, content)
      }
    })
  }

  /** A hostile root that others have banned keeps the correct nodes below it from theirs, so with one there need not be a single tree. */
  checkQuiescence(): Violation | undefined {
    return this.#run.adversaries.count > 0 ? undefined : this.#checker?.checkQuiescence()
  }

  start(): void {
    for (const [node, key] of this.#options.keys.entries()) this.#nodeOf.set(key, node)
    for (const node of this.#hosts.keys()) if (this.#run.population.isAlive(node)) this.started(node)
  }

  started(node: number): void {
    const { degree, keys, links, random, tabs, tabHosts, tabLinks } = this.#options
    const host = this.#hosts[node]
    const nodeRandom = random.fork(`${node} ${this.#run.population.lifetime(node)}`)
    this.#nodeOf.set(keys[node], node)
    this.#sessions.start(node)
    host.core = new OverlayNode({
      self: keys[node],
      addresses: this.#addresses(node),
      dials: this.#isTab(node) ? TRANSPORT_WEBSOCKET | (tabLinks ? TRANSPORT_WEBRTC : 0) : BASE_TRANSPORTS,
      transportsOf: tabs > 0 ? transportsOf : undefined,
      degree,
      random: () => nodeRandom.next(),
      now: this.#clock
    })
    host.towardsRoot = undefined
    if (this.#checker) host.view = host.core.view()
    for (const link of links[node]) this.#introduce(node, link)
    // Tabs know the addresses of the nodes that they can dial, whichever keys these have.
    if (this.#isTab(node)) for (let to = 0; to < tabHosts; to++) this.#introduce(node, to)
    else if (node < tabHosts) for (let tab = keys.length - tabs; tab < keys.length; tab++) this.#introduce(tab, node)
    this.#event(node, (core, now) => core.tick(now))
  }

  #introduce(node: number, peer: number): void {
    this.#event(node, (core, now) => core.candidate(now, this.#options.keys[peer], this.#addresses(peer)))
  }

  #isTab(node: number): boolean {
    return node >= this.#hosts.length - this.#options.tabs
  }

  #canDial(from: number, to: number): boolean {
    if (this.#isTab(to)) return this.#isTab(from) && this.#options.tabLinks
    return !this.#isTab(from) || to < this.#options.tabHosts
  }

  #addresses(node: number): readonly string[] {
    if (this.#options.tabs === 0) return []
    if (this.#isTab(node)) return this.#options.tabLinks ? ['webrtc'] : []
    return node < this.#options.tabHosts ? ['tcp', 'ws'] : ['tcp']
  }

  stopped(node: number, cause: StopCause): void {
    const host = this.#hosts[node]
    if (cause === 'leave') this.#event(node, (core, now) => core.leave(now))
    this.#sessions.stop(node, cause === 'silent')
    host.stop()
    this.#checker?.stopped(host)
  }

  paused(node: number): void {
    this.#hosts[node].pausedAt = this.#clock
  }

  resumed(node: number): void {
    const host = this.#hosts[node]
    if (host.pausedAt === undefined) return
    const stall = this.#clock - host.pausedAt
    host.pausedAt = undefined
    host.stalled += stall
    host.core?.stalled(stall)
  }

  left(node: number): void {
    this.#event(node, (core, now) => core.leave(now))
  }

  ban(node: number, neighbour: number): void {
    const { core, edges, key } = this.#hosts[node]
    const { parent, children } = core?.view() ?? { children: [] }
    const peer = [parent, ...children].find(held => held && held.session === edges.get(neighbour))?.peer
    if (core === undefined || peer === undefined) return
    this.#event(node, (_, now) => core.ban(now, peer))
    if (this.#checker && edges.has(neighbour))
      throw new Violation('overlay', `${key} keeps its edge with ${peer}, which it has banned`)
  }

  distrust(node: number, peer: string): void {
    this.#event(node, (core, now) => core.distrust(now, peer))
  }

  returned(node: number): void {
    this.#event(node, (core, now) => core.rejoin(now))
  }

  drip(from: number, to: number, drips: boolean): void {
    if (drips) this.#dripping.add(`${from} ${to}`)
    else this.#dripping.delete(`${from} ${to}`)
  }

  link(): void {}

  /** Closes the connection; both ends are notified. */
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

  /** Sends a message of the algorithm on the session of the tree edge. A service has no sessions. */
  send(from: number, to: number, content: unknown, bytes: number): void {
    const number = this.#hosts[from]?.edges.get(to)
    if (from < 0 || to < 0) this.#run.transport.sendSingle(from, to, content, bytes)
    else if (number !== undefined) this.#sessions.send(from, number, 'frame', content, bytes)
  }

  receive({ content, to, from }: Message): void {
    const message = content as SessionMessage | GossipMessage
    if (message.kind !== 'gossip') this.#sessions.receive(message)
    else if (this.#hosts[to].core !== undefined && this.#gossip.receive(to, from, message)) {
      this.#event(to, (core, now) => core.beacon(now, decodeBeacon(message.bytes)))
    }
  }

  wake(node: number): void {
    const host = this.#hosts[node]
    if (this.#run.now < host.wakeAt) return
    host.wakeAt = Number.POSITIVE_INFINITY
    host.clock = Math.max(host.clock, host.deadline)
    for (const neighbour of host.edges.keys())
      if (this.#dripping.has(`${neighbour} ${node}`)) this.#receiveBytes(node, neighbour)
    this.#isTimer = true
    this.#event(node, (core, now) => core.tick(now))
    this.#isTimer = false
  }

  /** The clock of the overlay nodes, in whole milliseconds, so that sums and differences of times are exact. */
  get #clock(): number {
    return Math.floor((this.#run.now * HEARTBEAT_MS) / this.#options.heartbeat)
  }

  /** Bytes arrived at a node on the session of a tree edge. */
  #receiveBytes(node: number, neighbour: number): void {
    const host = this.#hosts[node]
    const number = host.edges.get(neighbour)
    if (number === undefined || host.core === undefined) return
    this.#hear(node, number)
    host.core.bytesReceived(Math.max(host.clock, this.#clock), number, 0)
  }

  /** Something arrived on a session. */
  #hear(node: number, number: SessionId): void {
    const host = this.#hosts[node]
    host.heard.set(number, Math.max(host.clock, this.#clock) - host.stalled)
  }

  /** A neighbour may be declared dead only if nothing has arrived for the time limit while the node was running. */
  #checkSilence(host: OverlayHost, number: SessionId, neighbour: string): void {
    const heard = host.heard.get(number)
    if (this.#checker === undefined || heard === undefined) return
    const silence = host.clock - host.stalled - heard
    if (silence < DEAD_MS)
      throw new Violation('overlay', `${host.key} declares ${neighbour} dead after ${silence} of ${DEAD_MS} ms`)
  }

  /** A peer is redirected only to peers that it can dial. */
  #checkRedirect(node: number, number: SessionId, target: number): void {
    const sender = this.#sessions.remoteEndpoint(node, number)?.node
    if (this.#checker === undefined || sender === undefined || this.#canDial(sender, target)) return
    const [from, to, over] = [sender, target, node].map(one => this.#options.keys[one])
    throw new Violation('overlay', `${over} redirects ${from} to ${to}, which it cannot dial`)
  }

  #sendOverlay(node: number, number: SessionId, bytes: Uint8Array): void {
    this.#sessions.send(node, number, 'overlay', bytes, bytes.length)
  }

  /** Runs an event at a node, performs its effects and schedules its next timer. */
  #event<T>(node: number, event: (core: OverlayNode, now: number) => T): T | undefined {
    const host = this.#hosts[node]
    const { core } = host
    if (core === undefined) return undefined
    const now = Math.max(host.clock, this.#clock)
    host.clock = now
    const result = event(core, now)
    for (const effect of core.takeEffects()) this.#perform(node, host, effect)
    this.#reportMaster(node, host, core)
    this.#checkHost(host, core)
    const deadline = Math.ceil(core.nextDeadline(now))
    const time = Math.max(this.#run.now, (deadline * this.#options.heartbeat) / HEARTBEAT_MS)
    if (time < host.wakeAt) {
      host.wakeAt = time
      host.deadline = deadline
      this.#run.wakeAt(time, node)
    }
    return result
  }

  /** Tells the algorithm when the edge towards the root has changed. */
  #reportMaster(node: number, host: OverlayHost, core: OverlayNode): void {
    const session = core.towardsRoot
    if (session === host.towardsRoot) return
    host.towardsRoot = session
    const towards = [...host.edges].find(([, open]) => open === session)?.[0]
    this.#run.algorithm.setMaster?.(node, session === 'self' ? session : towards)
  }

  #checkHost(host: OverlayHost, core: OverlayNode): void {
    if (this.#checker === undefined || host.view === undefined) return
    this.#checkStanding(host, core)
    const before = host.view
    host.view = core.view()
    this.#checker.after(host, before, host.view)
    this.#checker.afterFreeze(host, host.view)
  }

  /** Only hostile nodes lose the trust of a correct one, and then they are not its parent. */
  #checkStanding({ node, key, clock }: OverlayHost, core: OverlayNode): void {
    const { adversaries } = this.#run
    for (const peer of adversaries.isHostile(node) ? [] : core.distrusted(clock)) {
      if (!adversaries.isHostile(this.#nodeOf.get(peer) as number))
        throw new Violation('standing', `${key} does not trust ${peer}, which is correct`)
      if (core.view().parent?.peer === peer)
        throw new Violation('standing', `${key} is below ${peer}, which it does not trust`)
    }
  }

  /** No peer is passed on to a node that the sender does not trust. */
  #checkTrust({ key, core, clock }: OverlayHost, peer: string): void {
    if (this.#checker && core?.distrusted(clock).includes(peer))
      throw new Violation('standing', `${key} joins or offers ${peer}, which it does not trust`)
  }

  #perform(node: number, { edges }: OverlayHost, effect: Effect): void {
    switch (effect.kind) {
      case 'open':
        this.#checkTrust(this.#hosts[node], effect.peer)
        this.#sessions.dial(node, effect.session, this.#nodeOf.get(effect.peer) as number, effect.peer)
        break
      case 'send':
        if (effect.message.kind === 'redirect' || effect.message.kind === 'offer')
          this.#checkTrust(this.#hosts[node], effect.message.contact.peer)
        if (effect.message.kind === 'redirect')
          this.#checkRedirect(node, effect.session, this.#nodeOf.get(effect.message.contact.peer) as number)
        this.#sendOverlay(node, effect.session, encodeMessage(effect.message))
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
        // Messages under a key that the node has lost may still arrive.
        if (id === undefined || this.#options.keys[neighbour] !== effect.peer) break
        edges.set(neighbour, effect.session)
        this.#hear(node, effect.session)
        this.#run.algorithm.connect?.(node, neighbour, id)
        this.#run.treeChanged()
        break
      }
      case 'edge-down': {
        const neighbour = this.#nodeOf.get(effect.peer) as number
        // Otherwise the neighbour has reported its silence.
        if (effect.reason === 'silent' && this.#isTimer)
          this.#checkSilence(this.#hosts[node], effect.session, effect.peer)
        this.#hosts[node].heard.delete(effect.session)
        // A newer session with the same neighbour may have replaced it.
        if (edges.get(neighbour) !== effect.session) break
        edges.delete(neighbour)
        // A node that leaves has the same reason for all its edges.
        const hasLeft = effect.reason === 'leaving' && this.#hosts[node].core?.towardsRoot !== undefined
        this.#run.algorithm.disconnect?.(node, neighbour, hasLeft)
        this.#run.treeChanged()
        break
      }
      default:
        effect satisfies never
    }
  }
}

/**
 * An in-memory network of real overlay nodes on a virtual clock: FIFO sessions with random delays, lossy gossip, and faults as plain
 * data, which fast-check can shrink. The safety properties are checked after every event; `violation` holds the first violation.
 * Runs are deterministic.
 */
import { type CheckedOverlayNode, OverlayChecker, type OverlayEndpoint, parentOf } from '../../sim/checkers/overlay.js'
import { decodeBeacon, decodeMessage, encodeBeacon, encodeMessage } from '../../src/overlay/codec.js'
import { type Effect, type SessionId, sameLabel } from '../../src/overlay/messages.js'
import { OverlayNode, type OverlayView } from '../../src/overlay/node.js'
import { DEFAULT_TIMERS } from '../../src/overlay/options.js'
import { EventQueue, seededRandom } from './virtual-time.js'

export interface NetworkOptions {
  readonly seed: number
  readonly nodes: number
  readonly degree: number
  /** Mean of the exponential part of a one-way delay, ms. */
  readonly latency: number
  /** Clocks differ from true time by up to this much, ms. */
  readonly skew: number
  /** Nodes start within this time, ms. */
  readonly spread: number
  /** Peer discovery: by gossip, or only by candidates (host 0 and the next host). */
  readonly discovery: 'gossip' | 'candidates'
}

export type Fault =
  | { readonly kind: 'crash' | 'restart' | 'leave'; readonly after: number; readonly node: number }
  /** Bit i of `sides` is node i's side; one-way: only messages from side 0 to side 1 are blocked. */
  | { readonly kind: 'partition'; readonly after: number; readonly sides: number; readonly oneWay: boolean }
  | { readonly kind: 'heal'; readonly after: number }
  /** The timers of the node run late by `by` ms from now on. */
  | { readonly kind: 'late'; readonly after: number; readonly node: number; readonly by: number }
  /** One session of the node breaks; each end may or may not be notified. */
  | { readonly kind: 'reset'; readonly after: number; readonly node: number; readonly pick: number }

interface Host extends CheckedOverlayNode {
  readonly index: number
  readonly key: string
  readonly offset: number
  incarnation: number
  core: OverlayNode | undefined
  view: OverlayView | undefined
  links: Map<SessionId, { link: Link; side: 0 | 1 }>
  wakeAt: number
  lateness: number
  /** When its edges began. */
  edgesSince: Map<SessionId, number>
}

interface End {
  readonly host: Host
  readonly incarnation: number
  session: SessionId | undefined
  open: boolean
  /** Arrival time of the last item sent from this end, and items blocked by a partition. */
  lastArrival: number
  held: Item[]
}

interface Link {
  readonly ends: [End, End]
}

type Item = Uint8Array | 'close'

const EPOCH = 1_700_000_000_000

export class OverlayNetwork {
  readonly hosts: Host[]
  readonly #options: NetworkOptions
  readonly #random: () => number
  readonly #queue = new EventQueue()
  readonly #links = new Set<Link>()
  readonly #checker: OverlayChecker
  #cut: (from: Host, to: Host) => boolean = () => false
  violation: string | undefined
  /** Number of changes of the set of held edges, and time of the last one. */
  topologyChanges = 0
  lastChangeAt = 0
  messages = 0
  accepts = 0

  constructor(options: NetworkOptions) {
    this.#options = options
    this.#random = seededRandom(options.seed)
    this.hosts = Array.from({ length: options.nodes }, (_, index) => ({
      index,
      key: `peer${String(Math.floor(this.#random() * 1e6)).padStart(6, '0')}-${index}`,
      offset: (2 * this.#random() - 1) * options.skew,
      incarnation: 0,
      core: undefined,
      view: undefined,
      links: new Map(),
      wakeAt: Number.POSITIVE_INFINITY,
      lateness: 0,
      edgesSince: new Map(),
      remoteEndpoint(session) {
        return across(this, session)
      }
    }))
    this.#checker = new OverlayChecker(this.hosts, options.degree)
    for (const host of this.hosts) this.#queue.push(this.#random() * options.spread, () => this.#boot(host))
  }

  get now(): number {
    return this.#queue.now
  }

  get alive(): Host[] {
    return this.hosts.filter(host => host.core !== undefined)
  }

  /** Runs for `duration` ms, or until `done` (checked after each event) or a violation. Returns whether `done` was reached. */
  run(duration: number, done: () => boolean = () => false): boolean {
    const end = this.now + duration
    while (this.violation === undefined && this.#queue.step(end)) if (done()) return true
    return false
  }

  apply(fault: Fault): void {
    switch (fault.kind) {
      case 'crash':
        this.crash(this.hosts[fault.node % this.hosts.length])
        break
      case 'restart':
        this.#boot(this.hosts[fault.node % this.hosts.length])
        break
      case 'leave': {
        const host = this.hosts[fault.node % this.hosts.length]
        this.#event(host, (core, now) => core.leave(now))
        this.crash(host)
        break
      }
      case 'partition':
        this.#cut = (from, to) => {
          const a = (fault.sides >> from.index) & 1
          const b = (fault.sides >> to.index) & 1
          return fault.oneWay ? a < b : a !== b
        }
        break
      case 'heal':
        this.#cut = () => false
        this.#releaseHeld()
        break
      case 'late':
        this.hosts[fault.node % this.hosts.length].lateness = fault.by
        break
      case 'reset': {
        const host = this.hosts[fault.node % this.hosts.length]
        const links = [...host.links.values()]
        if (links.length > 0) this.#reset(links[fault.pick % links.length].link)
        break
      }
      default:
        fault satisfies never
    }
  }

  crash(host: Host): void {
    if (host.core === undefined) return
    const links = [...host.links.values()]
    host.core = undefined
    host.view = undefined
    host.edgesSince = new Map()
    host.links = new Map()
    this.#checker.stopped(host)
    for (const { link } of links) this.#reset(link)
    this.#changed()
  }

  /** Whether the hosts form one tree with one label. */
  isOneTree(hosts: readonly Host[] = this.alive): boolean {
    let roots = 0
    const label = hosts[0]?.view?.label
    for (const host of hosts) {
      const { view } = host
      if (view === undefined || label === undefined || !sameLabel(view.label, label) || view.frozen) return false
      if (view.parent === undefined) roots += 1
      else if (parentOf(host) === undefined) return false
    }
    const edges = hosts.reduce((sum, host) => sum + (host.view?.children.length ?? 0), 0)
    return roots === 1 && edges === hosts.length - 1
  }

  /** Hosts of one side of a partition. */
  side(sides: number, bit: number): Host[] {
    return this.alive.filter(host => ((sides >> host.index) & 1) === bit)
  }

  height(): number {
    return Math.max(...this.alive.map(host => host.view?.depth ?? 0))
  }

  /** Longest path between two live hosts, in edges. */
  diameter(): number {
    const near = new Map<Host, Host[]>(this.alive.map(host => [host, []]))
    for (const host of this.alive) {
      const parent = parentOf(host)?.node as Host | undefined
      if (parent === undefined) continue
      near.get(host)?.push(parent)
      near.get(parent)?.push(host)
    }
    const farthest = (from: Host): [Host, number] => {
      const distance = new Map([[from, 0]])
      let last = from
      for (const host of distance.keys()) {
        last = host
        for (const other of near.get(host) ?? []) {
          if (!distance.has(other)) distance.set(other, (distance.get(host) ?? 0) + 1)
        }
      }
      return [last, distance.get(last) ?? 0]
    }
    return farthest(farthest(this.alive[0])[0])[1]
  }

  #boot(host: Host): void {
    if (host.core !== undefined) return
    host.incarnation += 1
    const seed = Math.floor(this.#random() * 2 ** 32)
    host.core = new OverlayNode({
      self: host.key,
      addresses: [`/memory/${host.index}`],
      degree: this.#options.degree,
      random: seededRandom(seed),
      now: this.#clock(host)
    })
    host.wakeAt = Number.POSITIVE_INFINITY
    host.view = host.core.view()
    if (this.#options.discovery === 'candidates') {
      for (const other of new Set([this.hosts[0], this.hosts[(host.index + 1) % this.hosts.length]])) {
        this.#event(host, (core, now) => core.candidate(now, other.key, [`/memory/${other.index}`]))
      }
    }
    this.#event(host, (core, now) => core.tick(now))
  }

  #clock(host: Host): number {
    return EPOCH + this.now + host.offset
  }

  #delay(): number {
    return 1 - Math.log(1 - this.#random()) * this.#options.latency
  }

  /** Processes one event at a host: executes the effects, checks, and schedules the next wake-up. */
  #event(host: Host, event: (core: OverlayNode, now: number) => void): void {
    const { core, view: before } = host
    if (core === undefined || before === undefined) return
    core.setLateness(host.lateness)
    event(core, this.#clock(host))
    for (const effect of core.takeEffects()) this.#perform(host, effect)
    host.view = core.view()
    this.#check(host, before, host.view)
    const due = this.now + Math.max(0, core.nextDeadline(this.#clock(host)) - this.#clock(host))
    if (due < host.wakeAt) this.#wake(host, due)
  }

  #wake(host: Host, at: number): void {
    const { incarnation } = host
    host.wakeAt = at
    this.#queue.push(at, () => {
      if (host.incarnation !== incarnation || host.core === undefined || host.wakeAt !== at) return
      host.wakeAt = Number.POSITIVE_INFINITY
      this.#event(host, (core, now) => core.tick(now))
    })
  }

  #perform(host: Host, effect: Effect): void {
    switch (effect.kind) {
      case 'open':
        this.#open(host, effect.session, effect.peer)
        break
      case 'send': {
        this.messages += 1
        const entry = host.links.get(effect.session)
        if (entry !== undefined) this.#transmit(entry.link, entry.side, encodeMessage(effect.message))
        break
      }
      case 'close': {
        const entry = host.links.get(effect.session)
        if (entry === undefined) break
        entry.link.ends[entry.side].open = false
        host.links.delete(effect.session)
        this.#transmit(entry.link, entry.side, 'close')
        break
      }
      case 'beacon':
        if (this.#options.discovery === 'gossip') this.#publish(host, encodeBeacon(effect.beacon))
        break
      case 'edge-up':
      case 'edge-down':
        this.#changed()
        break
      default:
        effect satisfies never
    }
  }

  #changed(): void {
    this.topologyChanges += 1
    this.lastChangeAt = this.now
  }

  #open(from: Host, session: SessionId, key: string): void {
    const to = this.hosts.find(host => host.key === key)
    if (to === undefined) throw new Error(`${from.key} dials ${key}, which does not exist`)
    const end = (host: Host, number: SessionId | undefined): End => ({
      host,
      incarnation: host.incarnation,
      session: number,
      open: true,
      lastArrival: 0,
      held: []
    })
    const near = end(from, session)
    const link: Link = { ends: [near, end(to, undefined)] }
    from.links.set(session, { link, side: 0 })
    this.#queue.push(this.now + this.#delay(), () => {
      if (this.#cut(from, to) || this.#cut(to, from)) return
      const far = end(to, undefined)
      link.ends[1] = far
      this.#event(to, (core, now) => {
        far.session = core.inbound(now, from.key)
      })
      if (far.session === undefined) {
        far.open = false
        this.#notifyClosed(near)
        return
      }
      to.links.set(far.session, { link, side: 1 })
      this.#links.add(link)
      if (!near.open) this.#transmit(link, 0, 'close')
      this.#queue.push(this.now + this.#delay(), () => {
        if (near.open && from.incarnation === near.incarnation) this.#event(from, (c, now) => c.opened(now, session))
      })
    })
  }

  #transmit(link: Link, side: 0 | 1, item: Item): void {
    const from = link.ends[side]
    const at = Math.max(this.now + this.#delay(), from.lastArrival + 0.001)
    from.lastArrival = at
    this.#queue.push(at, () => this.#deliver(link, side, item))
  }

  #deliver(link: Link, side: 0 | 1, item: Item): void {
    const from = link.ends[side]
    const to = link.ends[side === 0 ? 1 : 0]
    if (from.held.length > 0 || this.#cut(from.host, to.host)) from.held.push(item)
    else this.#arrive(to, item)
  }

  #arrive(to: End, item: Item): void {
    const { session } = to
    if (session === undefined || !to.open || to.host.incarnation !== to.incarnation || !to.host.core) return
    if (item === 'close') this.#notifyClosed(to)
    else this.#event(to.host, (core, now) => core.receive(now, session, decodeMessage(item)))
  }

  /** Delivers blocked items before any later item of their sessions. */
  #releaseHeld(): void {
    for (const link of this.#links) {
      if (!link.ends.some(end => end.open)) this.#links.delete(link)
      for (const side of [0, 1] as const) {
        const { held } = link.ends[side]
        while (held.length > 0) this.#arrive(link.ends[side === 0 ? 1 : 0], held.shift() as Item)
      }
    }
  }

  /** Breaks a session. Each end is notified with probability 0.7; otherwise it detects the silence. */
  #reset(link: Link): void {
    for (const [i, end] of link.ends.entries()) {
      const other = link.ends[1 - i]
      const isNotified = this.#random() < 0.7 && !this.#cut(other.host, end.host)
      if (isNotified) this.#queue.push(this.now + this.#delay(), () => this.#notifyClosed(end))
      end.lastArrival = Number.POSITIVE_INFINITY
      end.held = []
    }
  }

  #notifyClosed(end: End): void {
    const { host, session } = end
    if (!end.open || session === undefined || host.incarnation !== end.incarnation) return
    end.open = false
    host.links.delete(session)
    this.#event(host, (core, now) => core.closed(now, session))
  }

  #publish(from: Host, bytes: Uint8Array): void {
    for (const to of this.hosts) {
      if (to === from || this.#random() < 0.1) continue
      this.#queue.push(this.now + 2 * this.#delay(), () => {
        if (!this.#cut(from, to)) this.#event(to, (core, now) => core.beacon(now, decodeBeacon(bytes)))
      })
    }
  }

  /** A node whose timers run late by more than a heartbeat accepts no further child while its newest edge is young. */
  #checkLoad(host: Host, before: OverlayView, after: OverlayView): void {
    const newest = Math.max(...edgesOf(before).map(session => host.edgesSince.get(session) ?? this.now))
    const limit = Math.min(host.lateness, 2500)
    const isMore = after.children.length > before.children.length
    if (isMore && host.lateness > DEFAULT_TIMERS.heartbeat && this.now - newest < limit) {
      throw new Error(`${host.key} accepted a child while its timers were ${host.lateness} ms late`)
    }
    host.edgesSince = new Map(edgesOf(after).map(session => [session, host.edgesSince.get(session) ?? this.now]))
  }

  #check(host: Host, before: OverlayView, after: OverlayView): void {
    if (after.parent !== undefined && after.parent.session !== before.parent?.session) this.accepts += 1
    try {
      this.#checker.after(host, before, after)
      this.#checkLoad(host, before, after)
      this.#checker.afterFreeze(host, after)
    } catch (error) {
      this.violation ??= `at ${this.now.toFixed(1)} ms: ${(error as Error).message}`
    }
  }
}

function edgesOf({ parent, children }: OverlayView): SessionId[] {
  return [...(parent ? [parent] : []), ...children].map(({ session }) => session)
}

function across(host: Host, session: SessionId): OverlayEndpoint | undefined {
  const entry = host.links.get(session)
  const other = entry?.link.ends[entry.side === 0 ? 1 : 0]
  if (entry === undefined || other === undefined || other.host.incarnation !== other.incarnation) return undefined
  return { node: other.host, session: other.session, link: entry.link }
}

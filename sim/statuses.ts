/**
 * The statuses of real peers over the edges of a simulated network, beside an algorithm: totals, the nearest rows, and their encoded
 * bytes. Virtual milliseconds count as milliseconds. Signatures are random bytes of the same size.
 */
import type { MasterEdge, PredictorId } from '../src/admb/index.js'
import {
  aggregateOf,
  type NetworkStatus,
  type OwnStatus,
  StatusCodec,
  type StatusMessage,
  StatusTree
} from '../src/view/index.js'
import type { Random } from './engine/random.js'
import type { StatusTraffic } from './result.js'
import type { Algorithm, World } from './world.js'

/** Tag of the timers, and the interval of checks for due reports. */
const TAG = -1
const TICK_MS = 500
const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/** A message on the wire. Its content is compressed if the node that sends it is in the sample. */
class StatusFrame {
  readonly session: number
  readonly content: StatusMessage | Uint8Array
  readonly length: number

  /** @param length in bytes, on the wire */
  constructor(session: number, content: StatusMessage | Uint8Array, length: number) {
    this.session = session
    this.content = content
    this.length = length
  }
}

/** Sizes of compressed messages relative to their JSON, as means for each power of two of the JSON's length. */
class Ratios {
  readonly #json: number[] = []
  readonly #compressed: number[] = []

  add(json: number, compressed: number): void {
    const k = Math.floor(Math.log2(json))
    this.#json[k] = (this.#json[k] ?? 0) + json
    this.#compressed[k] = (this.#compressed[k] ?? 0) + compressed
  }

  /** Undefined if there was no message of about this length. */
  estimate(json: number): number | undefined {
    const k = Math.floor(Math.log2(json))
    return this.#json[k] === undefined ? undefined : Math.round((json * this.#compressed[k]) / this.#json[k])
  }
}

interface Edge {
  readonly session: number
  readonly neighbour: number
  /** How it compresses what it sends, and reads compressed messages. */
  readonly codec: StatusCodec
}

interface Host {
  readonly tree: StatusTree
  /** By number of the session. */
  readonly edges: Map<number, Edge>
  readonly started: number
  inputs: number
  predictor: PredictorId
}

interface StatusOptions {
  /** Number of nodes with an open page. */
  readonly watchers: number
  /** Virtual milliseconds that are not counted. */
  readonly warmup: number
  /** Number of nodes for each node that compresses its messages. */
  readonly sample: number
  readonly random: Random
}

export class Statuses implements Algorithm {
  readonly #algorithm: Algorithm
  readonly #world: World
  readonly #options: StatusOptions
  readonly #ids: readonly string[]
  readonly #hosts: Host[]
  readonly #received: Float64Array
  readonly #ratios = new Ratios()
  #messages = 0

  constructor(algorithm: Algorithm, world: World, options: StatusOptions) {
    const { nodes } = world.topology
    this.#algorithm = algorithm
    this.#world = world
    this.#options = options
    this.#received = new Float64Array(nodes)
    this.#ids = Array.from(
      { length: nodes },
      (_, node) => `12D3KooW${draw(options.random.fork(`id ${node}`), BASE58, 44)}`
    )
    this.#hosts = this.#ids.map((_, node) => this.#host(node))
  }

  /** Call it once, before the run. */
  start(): void {
    for (const node of this.#hosts.keys()) {
      const offset = TICK_MS * this.#options.random.fork(`tick ${node}`).next()
      this.#world.startTimer(offset, node, TAG)
    }
  }

  predictorChanged(node: number, id: PredictorId): void {
    const host = this.#hosts[node]
    if (host !== undefined) host.predictor = id
  }

  get traffic(): StatusTraffic {
    const { now } = this.#world
    const { warmup, watchers } = this.#options
    const seconds = Math.max(1, now - warmup) / 1000
    const bytes = this.#received.reduce((sum, one) => sum + one, 0)
    const most = this.#received.reduce((max, one) => Math.max(max, one), 0)
    const watching = this.#hosts.slice(0, watchers).filter((_, node) => this.#world.isUp(node))
    const least = (of: (host: Host) => number) => (watching.length === 0 ? 0 : Math.min(...watching.map(of)))
    return {
      messages: this.#messages,
      bytes,
      bytesPerSecond: { mean: bytes / seconds / this.#hosts.length, max: most / seconds },
      peers: least(({ tree }) => tree.network(now).peers),
      rows: least(({ tree }) => tree.rows(now).length)
    }
  }

  serving(node: number) {
    return this.#algorithm.serving(node)
  }

  input(node: number, examples: Parameters<Algorithm['input']>[1], number: number): void {
    this.#hosts[node].inputs += examples.size
    this.#algorithm.input(node, examples, number)
  }

  tick(node: number): void {
    this.#algorithm.tick(node)
  }

  connect(node: number, neighbour: number, session: number): void {
    const { tree, edges } = this.#hosts[node]
    for (const edge of edges.values()) if (edge.neighbour === neighbour) this.#drop(node, edge.session)
    edges.set(session, { session, neighbour, codec: new StatusCodec() })
    tree.connect(session, this.#ids[neighbour], this.#world.now)
    this.#algorithm.connect?.(node, neighbour, session)
    this.#flush(node)
  }

  setMaster(node: number, master: MasterEdge): void {
    this.#algorithm.setMaster?.(node, master)
  }

  disconnect(node: number, neighbour: number, hasLeft?: boolean): void {
    for (const edge of [...this.#hosts[node].edges.values()])
      if (edge.neighbour === neighbour) this.#drop(node, edge.session)
    this.#algorithm.disconnect?.(node, neighbour, hasLeft)
    this.#flush(node)
  }

  receive(to: number, from: number, message: unknown): void {
    if (!(message instanceof StatusFrame)) {
      this.#algorithm.receive(to, from, message)
      return
    }
    const { tree, edges } = this.#hosts[to]
    const edge = edges.get(message.session)
    if (edge === undefined) return
    if (this.#world.now >= this.#options.warmup) {
      this.#received[to] += message.length
      this.#messages++
    }
    const { content } = message
    tree.receive(edge.session, content instanceof Uint8Array ? edge.codec.decode(content) : content, this.#world.now)
    this.#flush(to)
  }

  timer(node: number, tag: number): void {
    if (tag !== TAG) {
      this.#algorithm.timer(node, tag)
      return
    }
    const { now } = this.#world
    const { tree } = this.#hosts[node]
    if (now >= tree.nextDeadline) tree.setOwn(this.#own(node))
    tree.watch(node < this.#options.watchers, now)
    tree.tick(now)
    this.#flush(node)
    this.#world.startTimer(TICK_MS, node, TAG)
  }

  finish(node: number): void {
    this.#algorithm.finish?.(node)
  }

  crash(node: number): void {
    this.#algorithm.crash(node)
  }

  restart(node: number, disk: Parameters<Algorithm['restart']>[1]): void {
    const { inputs } = this.#hosts[node]
    this.#hosts[node] = this.#host(node)
    if (disk === 'kept') this.#hosts[node].inputs = inputs
    this.#algorithm.restart(node, disk)
    this.#world.startTimer(TICK_MS, node, TAG)
  }

  totals() {
    return this.#algorithm.totals()
  }

  #host(node: number): Host {
    const { now, start } = this.#world
    const host = { edges: new Map(), started: Math.floor(now), inputs: 0, predictor: start.id }
    return { ...host, tree: new StatusTree(this.#statusOf(node, host), () => true) }
  }

  #own(node: number): OwnStatus {
    return this.#statusOf(node, this.#hosts[node])
  }

  #statusOf(node: number, host: Omit<Host, 'tree'>): OwnStatus {
    const { now } = this.#world
    const { updates, digest } = host.predictor
    const seconds = (now - host.started) / 1000
    // Algorithms without digests have the same predictors at the same number of updates.
    const short = (digest === '' ? updates.toString(16) : digest).slice(0, 8).padStart(8, '0')
    const status: NetworkStatus = {
      version: 1,
      incarnation: 1,
      started: host.started,
      uptime: Math.round(10 * seconds) / 10,
      interval: 1000,
      inputs: host.inputs,
      inputsPerSecond: seconds === 0 ? 0 : Math.round((10 * host.inputs) / seconds) / 10,
      sent: 0,
      received: 0,
      neighbours: [...host.edges.values()].map(({ neighbour }) => this.#ids[neighbour]).slice(0, 64),
      predictor: { updates, origin: '', incarnation: 1 },
      trail: [short],
      adopted: 0,
      discarded: 0,
      ended: false
    }
    const random = this.#options.random.fork(`signature ${node} ${now}`)
    const row = {
      id: this.#ids[node],
      text: JSON.stringify(status),
      signature: `${draw(random, BASE64, 86)}==`,
      status
    }
    return { row, totals: aggregateOf(status, [[updates, short]], false) }
  }

  #drop(node: number, session: number): void {
    const { tree, edges } = this.#hosts[node]
    edges.delete(session)
    tree.disconnect(session, this.#world.now)
  }

  #frame(node: number, { session, codec }: Edge, message: StatusMessage): StatusFrame {
    const { sample } = this.#options
    const json = sample === 1 ? 0 : JSON.stringify(message).length
    const isSampled = node % sample === 0
    const estimate = isSampled ? undefined : this.#ratios.estimate(json)
    if (estimate !== undefined) return new StatusFrame(session, message, estimate)
    const bytes = codec.encode(message)
    if (isSampled && sample > 1) this.#ratios.add(json, bytes.length)
    return new StatusFrame(session, bytes, bytes.length)
  }

  #flush(node: number): void {
    const { tree, edges } = this.#hosts[node]
    for (const { edge, message } of tree.takeMessages()) {
      const held = edges.get(edge)
      if (held === undefined) continue
      const frame = this.#frame(node, held, message)
      this.#world.send(node, held.neighbour, frame, frame.length)
      if (message.report) tree.sent(edge, frame.length)
    }
  }
}

function draw(random: Random, letters: string, length: number): string {
  let text = ''
  for (let i = 0; i < length; i++) text += letters[random.below(letters.length)]
  return text
}

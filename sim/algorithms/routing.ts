/**
 * Messages between any two nodes, hop by hop over the edges of the tree. Each hop is a message of its own: it takes the delay of its
 * link and occupies its bandwidth, and it is lost with the link or at a relay that is down. A broadcast is relayed over each edge
 * once. Routes are the shortest paths over the edges that the tree has now.
 */
import type { Connectable } from '../wiring/wiring.js'
import type { World } from '../world.js'

/** Node number of a service that does not fail. It is at the place of node 0, whose links it shares, and linked to node 0. */
export const SERVICE = -1
const PLACE = 0

/** Bytes of the origin of a message, and of its receiver or its number. */
const HEADER_BYTES = 8

/** A message on its way. */
interface Packet<Content> {
  readonly origin: number
  readonly content: Content
  readonly bytes: number
  /** Nodes from the origin to the receiver, and the place of the next one; undefined in a broadcast. */
  readonly path?: readonly number[]
  readonly next: number
}

export class Routing<Content> {
  readonly #world: World
  /** For a node, the next hop of each other node towards it; −1 without a path. */
  readonly #hopsTo = new Map<number, Int32Array>()
  /** For each node, the number of the last broadcast of each origin, so that none is relayed twice, or after a newer one. */
  readonly #seen: readonly Map<number, number>[]
  #broadcasts = 0
  /** Callbacks for the algorithm: the routes change with the edges. */
  readonly connections: Connectable = {
    connect: () => this.#hopsTo.clear(),
    disconnect: () => this.#hopsTo.clear()
  }

  constructor(world: World) {
    this.#world = world
    this.#seen = world.topology.neighbours.map(() => new Map())
  }

  /** Sends a message along the path to its receiver. Without a path it is lost. */
  send(from: number, to: number, content: Content, bytes: number): void {
    const path = this.#path(from, to)
    if (path.length > 1)
      this.#forward(from, path, { origin: from, content, bytes: bytes + HEADER_BYTES, path, next: 1 })
  }

  /** Sends a message to all other nodes. */
  broadcast(from: number, content: Content, bytes: number): void {
    this.#relay(from, from, { origin: from, content, bytes: bytes + HEADER_BYTES, next: ++this.#broadcasts })
  }

  /**
   * Relays a message that has arrived at a node.
   * @returns the message, if it is for this node
   */
  receive(
    to: number,
    from: number,
    message: unknown
  ): { readonly origin: number; readonly content: Content } | undefined {
    const packet = message as Packet<Content>
    const { path, next, origin } = packet
    if (path === undefined) {
      if (origin === to || next <= (this.#seen[to].get(origin) ?? 0)) return undefined
      this.#seen[to].set(origin, next)
      this.#relay(to, from, packet)
    } else if (next < path.length - 1) {
      this.#forward(to, path, { ...packet, next: next + 1 })
      return undefined
    }
    return packet
  }

  /** Number of hops between two nodes; 0 without a path. */
  hops(from: number, to: number): number {
    return Math.max(0, this.#path(from, to).length - 1)
  }

  #forward(from: number, path: readonly number[], packet: Packet<Content>): void {
    this.#world.send(from, path[packet.next], packet, packet.bytes)
  }

  #relay(node: number, from: number, packet: Packet<Content>): void {
    for (const neighbour of this.#world.neighbours(node)) {
      if (neighbour !== from) this.#world.send(node, neighbour, packet, packet.bytes)
    }
  }

  /** The nodes of a path, both ends included; only its first node without a path. */
  #path(from: number, to: number): readonly number[] {
    if (from === SERVICE) return [...this.#path(to, from)].reverse()
    const end = to === SERVICE ? PLACE : to
    const hops = this.#hops(end)
    const path = [from]
    for (let node = from; node !== end; path.push(node)) {
      node = hops[node]
      if (node < 0) return [from]
    }
    if (to !== SERVICE) return path
    return [from, ...path.slice(1, -1), SERVICE]
  }

  #hops(end: number): Int32Array {
    const known = this.#hopsTo.get(end)
    if (known !== undefined) return known
    const hops = new Int32Array(this.#world.topology.nodes).fill(-1)
    const queue = [end]
    for (const node of queue) {
      for (const neighbour of this.#world.neighbours(node)) {
        if (neighbour === end || hops[neighbour] >= 0) continue
        hops[neighbour] = node
        queue.push(neighbour)
      }
    }
    this.#hopsTo.set(end, hops)
    return hops
  }
}

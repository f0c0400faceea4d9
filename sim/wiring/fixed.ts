/** Connects the edges of the topology whose nodes are both running, immediately after every fault. */
import type { Population } from '../faults/population.js'
import type { Transport } from '../network/transport.js'
import type { Topology } from '../topology.js'
import type { Connectable, Wiring } from './wiring.js'

/** Connects the edges of the topology whose nodes are both running, immediately after every fault. */
export class FixedWiring implements Wiring {
  readonly #topology: Topology
  readonly #population: Population
  readonly #transport: Transport
  readonly #algorithm: Connectable
  /** The neighbours that each node has a session with. */
  readonly #sessionsOf: readonly Set<number>[]
  #sessions = 0

  constructor(topology: Topology, population: Population, transport: Transport, algorithm: Connectable) {
    this.#topology = topology
    this.#population = population
    this.#transport = transport
    this.#algorithm = algorithm
    this.#sessionsOf = topology.neighbours.map(() => new Set())
  }

  start(): void {
    for (const [node, parent] of this.#topology.parents.entries()) if (parent >= 0) this.link(node, parent)
  }

  stopped(node: number): void {
    for (const other of this.#sessionsOf.keys()) this.unlink(other, node)
    this.#sessionsOf[node].clear()
  }

  started(node: number): void {
    for (const neighbour of this.#topology.neighbours[node]) this.link(node, neighbour)
  }

  link(from: number, to: number): void {
    if (from === to || !this.#population.isAlive(from) || !this.#population.isAlive(to)) return
    const session = ++this.#sessions
    for (const [node, neighbour] of [
      [from, to],
      [to, from]
    ]) {
      this.#sessionsOf[node].add(neighbour)
      this.#algorithm.connect?.(node, neighbour, session)
    }
  }

  unlink(from: number, to: number): void {
    if (this.#sessionsOf[from]?.delete(to)) this.#algorithm.disconnect?.(from, to)
  }

  restore(): void {
    const { neighbours } = this.#topology
    for (const [node, others] of this.#sessionsOf.entries()) {
      for (const other of others) if (!neighbours[node].includes(other)) this.unlink(node, other)
      for (const other of neighbours[node]) {
        if (!others.has(other) || !this.#sessionsOf[other].has(node)) this.link(node, other)
      }
    }
  }

  neighbours(node: number): Iterable<number> {
    return this.#topology.neighbours[node]
  }

  send(from: number, to: number, content: unknown, bytes: number): void {
    const life = to < 0 ? 0 : this.#population.lifetime(to)
    this.#transport.send({ from, to, content, isOverlay: false, lifetime: life, channel: undefined }, bytes)
  }

  receive(): void {}

  wake(): void {}
}

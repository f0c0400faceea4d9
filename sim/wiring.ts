/**
 * Who is connected with whom at the moment, for algorithms with sessions between neighbours: as a fixed tree says, which an
 * oracle wires again at once after every fault, or as the overlay builds it.
 */
import type { Violation } from './checkers/violation.js'
import type { Population } from './faults/population.js'
import type { Message } from './network/mail.js'
import type { Transport } from './network/transport.js'
import type { Topology } from './topology.js'

/** What the wiring tells the algorithm; nothing, where an algorithm knows no sessions. */
export interface Connectable {
  /** A node holds a session with a neighbour, of the same number at both ends. */
  connect?(node: number, neighbour: number, session: number): void
  disconnect?(node: number, neighbour: number): void
}

export interface Wiring {
  /** The run begins, with the nodes that are there. */
  start(): void
  /** A node crashed or left. */
  stopped(node: number, how: 'crash' | 'silent' | 'leave'): void
  /** A node is back or joined. */
  started(node: number): void
  /** A link comes that the topology does not have, or one end loses its session. The overlay makes its links itself, but loses them so. */
  link(from: number, to: number): void
  unlink(from: number, to: number): void
  /** Between whom the tree has edges. */
  neighbours(node: number): Iterable<number>
  /** Sends what an algorithm says. */
  send(from: number, to: number, content: unknown, bytes: number): void
  /** A message of the wiring's own arrived. */
  receive(message: Message): void
  /** A time has come for which the wiring asked. */
  wake(node: number): void
  /** What is not yet as it must come to be, once nothing fails any more. */
  unsettled?(): Violation | undefined
}

export class FixedWiring implements Wiring {
  readonly #topology: Topology
  readonly #population: Population
  readonly #transport: Transport
  readonly #algorithm: Connectable
  /** With whom each node holds a session. */
  readonly #held: readonly Set<number>[]
  #sessions = 0

  constructor(topology: Topology, population: Population, transport: Transport, algorithm: Connectable) {
    this.#topology = topology
    this.#population = population
    this.#transport = transport
    this.#algorithm = algorithm
    this.#held = topology.neighbours.map(() => new Set())
  }

  start(): void {
    for (const [node, parent] of this.#topology.parents.entries()) if (parent >= 0) this.link(node, parent)
  }

  stopped(node: number): void {
    for (const other of this.#held.keys()) this.unlink(other, node)
    this.#held[node].clear()
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
      this.#held[node].add(neighbour)
      this.#algorithm.connect?.(node, neighbour, session)
    }
  }

  unlink(from: number, to: number): void {
    if (this.#held[from]?.delete(to)) this.#algorithm.disconnect?.(from, to)
  }

  neighbours(node: number): Iterable<number> {
    return this.#topology.neighbours[node]
  }

  send(from: number, to: number, content: unknown, bytes: number): void {
    const life = to < 0 ? 0 : this.#population.life(to)
    this.#transport.send({ from, to, content, isOverlay: false, life, lane: undefined }, bytes)
  }

  receive(): void {}

  wake(): void {}
}

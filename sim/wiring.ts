/**
 * Who is connected with whom at the moment, for algorithms with sessions between neighbours: as a fixed tree says, which an
 * oracle wires again at once after every fault, or as the overlay builds it.
 */
import type { Violation } from './checkers/index.js'
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
  /** Links two nodes that are alive, anew if they are linked; nothing, where a protocol decides on links. */
  link(from: number, to: number): void
  /** One end loses its session with the other. */
  unlink(from: number, to: number): void
  /** Sends what an algorithm says. */
  send(from: number, to: number, content: unknown, bytes: number): void
  /** A message of the wiring's own arrived. */
  receive(message: Message): void
  /** A time has come for which the wiring asked. */
  wake(node: number): void
  /** With nothing failing any more: what is not yet as it must come to be. */
  unsettled?(): Violation | undefined
}

export class FixedWiring implements Wiring {
  readonly #topology: Topology
  readonly #population: Population
  readonly #transport: Transport
  readonly #algorithm: Connectable
  /** Links beyond those of the topology. */
  readonly #extra = new Map<number, Set<number>>()
  #sessions = 0

  constructor(topology: Topology, population: Population, transport: Transport, algorithm: Connectable) {
    this.#topology = topology
    this.#population = population
    this.#transport = transport
    this.#algorithm = algorithm
  }

  start(): void {
    for (const [node, parent] of this.#topology.parents.entries()) {
      if (parent >= 0 && this.#population.isAlive(node)) this.#connect(node, parent)
    }
  }

  stopped(node: number): void {
    for (const neighbour of [...this.#topology.neighbours[node], ...(this.#extra.get(node) ?? [])]) {
      if (this.#population.isAlive(neighbour)) this.#algorithm.disconnect?.(neighbour, node)
      this.#extra.get(neighbour)?.delete(node)
    }
    this.#extra.delete(node)
  }

  started(node: number): void {
    for (const neighbour of this.#topology.neighbours[node]) this.#connect(node, neighbour)
  }

  link(from: number, to: number): void {
    if (from === to || !this.#population.isAlive(from)) return
    if (!this.#topology.neighbours[from].includes(to)) {
      for (const [one, other] of [
        [from, to],
        [to, from]
      ]) {
        const links = this.#extra.get(one) ?? new Set()
        this.#extra.set(one, links.add(other))
      }
    }
    this.#connect(from, to)
  }

  unlink(from: number, to: number): void {
    if (this.#population.isAlive(from)) this.#algorithm.disconnect?.(from, to)
  }

  send(from: number, to: number, content: unknown, bytes: number): void {
    const life = to < 0 ? 0 : this.#population.life(to)
    this.#transport.send({ from, to, content, isOverlay: false, life, lane: undefined }, bytes)
  }

  receive(): void {}

  wake(): void {}

  #connect(node: number, neighbour: number): void {
    if (!this.#population.isAlive(neighbour)) return
    const session = ++this.#sessions
    this.#algorithm.connect?.(node, neighbour, session)
    this.#algorithm.connect?.(neighbour, node, session)
  }
}

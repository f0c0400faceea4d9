/**
 * Creates the wiring for a scenario's topology: that of the overlay, or one that connects the edges of the topology whose nodes
 * are both running, immediately after every fault.
 */

import type { Random } from '../engine/random.js'
import type { Population } from '../faults/schedule.js'
import type { Transport } from '../network/transport.js'
import { type OverlayRun, OverlayWiring } from '../overlay/overlay-wiring.js'
import type { Scenario } from '../scenario.js'
import type { Topology } from '../topology.js'
import type { Connectable, StopCause, Wiring } from './wiring.js'

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
    const { parents } = this.#topology
    for (const node of parents.keys()) this.#setMaster(node)
    for (const [node, parent] of parents.entries()) if (parent >= 0) this.link(node, parent)
  }

  stopped(node: number, cause: StopCause): void {
    for (const other of this.#sessionsOf.keys()) this.unlink(other, node, cause === 'leave')
    this.#sessionsOf[node].clear()
  }

  started(node: number): void {
    this.#setMaster(node)
    for (const neighbour of this.#topology.neighbours[node]) this.link(node, neighbour)
  }

  /** Node 0 is the root. */
  #setMaster(node: number): void {
    const parent = this.#topology.parents[node]
    this.#algorithm.setMaster?.(node, parent < 0 ? 'self' : parent)
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

  unlink(from: number, to: number, hasLeft = false): void {
    if (this.#sessionsOf[from]?.delete(to)) this.#algorithm.disconnect?.(from, to, hasLeft)
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
    this.#transport.sendSingle(from, to, content, bytes)
  }

  receive(): void {}

  wake(): void {}
}

/** Default heartbeat interval of the overlay, in latencies. */
const HEARTBEAT_LATENCIES = 10

/** What a wiring works with. */
export interface WiringRun extends OverlayRun {
  readonly scenario: Scenario
  readonly topology: Topology
  readonly labels: readonly string[]
}

/** Creates a custom overlay for a run. Draw random numbers from `random` only, so that the run is reproducible. */
export type WiringFactory = (run: WiringRun, random: Random) => Wiring

/** @param isChecked whether the overlay's invariants are checked after every event */
export function createWiring(run: WiringRun, isChecked: boolean, random: Random): Wiring {
  const { scenario, topology, population, transport, algorithm, labels } = run
  const { links } = topology
  // Algorithms without sessions run on the tree of shortest paths over the links.
  if (links === undefined || algorithm.connect === undefined) {
    return new FixedWiring(topology, population, transport, algorithm)
  }
  const { degree, tabs, tabHosts, tabLinks, latency, heartbeat = HEARTBEAT_LATENCIES * latency } = scenario
  return new OverlayWiring({ degree, tabs, tabHosts, tabLinks, heartbeat, links, keys: labels, random, isChecked }, run)
}

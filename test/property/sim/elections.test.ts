/** Elections over random trees with delays: the nodes of each component agree on one master, also after faults. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import {
  byInvitation,
  byTimeout,
  type Election,
  type ElectionHost,
  type ElectionMessage,
  isBetterCandidate,
  overTree
} from '../../../sim/algorithms/elections.js'
import { fromParents } from '../../../sim/topology.js'
import type { World } from '../../../sim/world.js'

const PERIOD = 1
const MAX_DELAY = 0.5

/** Nodes that know only who their master is, and masters whose beat all reachable nodes hear in each period. */
class Network {
  readonly masters: number[]
  readonly updates: number[]
  readonly down = new Set<number>()
  readonly #heard: number[]
  readonly #election: Election
  readonly #topology
  readonly #timeout: number
  #now = 0
  #queue: { readonly at: number; readonly act: () => void }[] = []
  readonly #draw: () => number

  constructor(
    topology: ReturnType<typeof fromParents>,
    draws: readonly number[],
    create: (host: ElectionHost) => Election
  ) {
    let next = 0
    this.#draw = () => draws[next++ % draws.length]
    this.#topology = topology
    this.masters = topology.neighbours.map(() => 0)
    this.updates = topology.neighbours.map((_, node) => draws[node % draws.length] % 3)
    this.updates[0] = 3
    this.#heard = topology.neighbours.map(() => 0)
    this.#timeout = 4 * (PERIOD + topology.diameter * MAX_DELAY)
    const neighbours = (node: number) => topology.neighbours[node]
    const network = this
    const world = {
      topology,
      neighbours,
      latency: MAX_DELAY,
      get now() {
        return network.#now
      }
    } as unknown as World
    this.#election = create({
      world,
      timeout: this.#timeout,
      candidate: index => ({ index, updates: this.updates[index] }),
      masterOf: node => this.masters[node],
      silence: node => this.#now - this.#heard[node],
      follow: (node, master) => {
        this.masters[node] = master
        this.#heard[node] = this.#now
      },
      send: (from, to, message) => this.#send(from, to, message),
      broadcast: (from, message) => {
        for (const node of this.component(from)) if (node !== from) this.#send(from, node, message)
      }
    })
  }

  /** The nodes that a node reaches over nodes that are up. */
  component(node: number): Set<number> {
    const reached = new Set([node])
    for (const from of reached)
      for (const to of this.#topology.neighbours[from]) if (!this.down.has(to)) reached.add(to)
    return reached
  }

  run(timeouts: number): void {
    const end = this.#now + timeouts * this.#timeout
    for (let at = this.#now + PERIOD; at <= end; at += PERIOD) {
      for (const node of this.masters.keys()) this.#at(at + (node % 4) / 8, () => this.#tick(node))
    }
    for (;;) {
      const at = Math.min(...this.#queue.map(event => event.at))
      if (at > end + PERIOD) break
      const [event] = this.#queue.splice(
        this.#queue.findIndex(candidate => candidate.at === at),
        1
      )
      this.#now = at
      event.act()
    }
    this.#queue = []
  }

  restart(node: number): void {
    this.down.delete(node)
    this.masters[node] = -1
    this.#heard[node] = this.#now
    this.#election.restart(node)
  }

  #at(at: number, act: () => void): void {
    this.#queue.push({ at, act })
  }

  #send(from: number, to: number, message: ElectionMessage): void {
    this.#deliver(from, to, () => this.#election.receive(to, from, message))
  }

  #deliver(from: number, to: number, act: () => void): void {
    this.#at(this.#now + (MAX_DELAY * (1 + (this.#draw() % 8))) / 8, () => {
      if (!this.down.has(to) && this.component(from).has(to)) act()
    })
  }

  #tick(node: number): void {
    if (this.down.has(node)) return
    if (this.masters[node] === node) this.#beat(node)
    this.#election.tick(node)
  }

  #beat(master: number): void {
    const beat = { index: master, updates: this.updates[master] }
    for (const node of this.component(master))
      if (node !== master) this.#deliver(master, node, () => this.#hear(node, beat))
  }

  #hear(node: number, beat: { readonly index: number; readonly updates: number }): void {
    const { updates, masters } = this
    const isOwn = masters[node] === beat.index
    if (!isOwn && !this.#election.followsOthers) return
    const current = { index: masters[node] < 0 ? Number.POSITIVE_INFINITY : masters[node], updates: updates[node] }
    if (!isOwn && !isBetterCandidate(beat, current)) return
    if (beat.updates < updates[node]) return
    updates[node] = beat.updates
    masters[node] = beat.index
    this.#heard[node] = this.#now
  }
}

const trees = fc
  .integer({ min: 2, max: 12 })
  .chain(nodes => fc.array(fc.nat(), { minLength: nodes - 1, maxLength: nodes - 1 }))
  .map(draws => fromParents(draws.length + 1, i => draws[i - 1] % i))
const draws = fc.array(fc.nat(100), { minLength: 8, maxLength: 40 })
const faults = fc.array(fc.nat(11), { minLength: 1, maxLength: 4 })

function assertAgreement(network: Network): void {
  for (const node of network.masters.keys()) {
    if (network.down.has(node)) continue
    const component = network.component(node)
    const masters = new Set([...component].map(member => network.masters[member]))
    assert.equal(masters.size, 1, `masters ${[...masters]} in one component`)
    const [master] = masters
    assert.ok(component.has(master), `${node} follows ${master}, which is not in its component`)
  }
}

for (const [name, election] of Object.entries({ byTimeout, overTree, byInvitation })) {
  describe(`election ${name}`, () => {
    it('gives each component one master, when the first one and others have failed and when they are back', () => {
      fc.assert(
        fc.property(trees, draws, faults, (topology, values, failed) => {
          const network = new Network(topology, values, election)
          network.run(2)
          assert.deepEqual(new Set(network.masters), new Set([0]))
          for (const node of [0, ...failed]) if (node < topology.nodes) network.down.add(node)
          if (network.down.size === topology.nodes) return
          network.run(12)
          assertAgreement(network)
          for (const node of [...network.down]) network.restart(node)
          network.run(12)
          assertAgreement(network)
        }),
        { numRuns: 30 }
      )
    })

    it('keeps a master that is up, although a node has heard nothing of it', () => {
      fc.assert(
        fc.property(trees, draws, fc.nat(11), (topology, values, cut) => {
          const node = 1 + (cut % (topology.nodes - 1))
          const network = new Network(topology, values, election)
          network.run(2)
          network.down.add(node)
          network.run(1)
          network.restart(node)
          network.run(12)
          assert.deepEqual(new Set(network.masters), new Set([0]))
        }),
        { numRuns: 20 }
      )
    })
  })
}

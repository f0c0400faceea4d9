/** Messages over random trees: each takes the edges of its path, and a broadcast each edge once. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { Routing } from '../../../sim/algorithms/routing.js'
import { fromParents } from '../../../sim/topology.js'
import type { World } from '../../../sim/world.js'

const trees = fc
  .integer({ min: 2, max: 24 })
  .chain(nodes => fc.array(fc.nat(), { minLength: nodes - 1, maxLength: nodes - 1 }))
  .map(draws => fromParents(draws.length + 1, i => draws[i - 1] % i))

interface Hop {
  readonly from: number
  readonly to: number
}

/** Delivers messages in the order in which they were sent, each one `copies` times. */
function network(topology: ReturnType<typeof fromParents>, { down = -2, copies = 1 } = {}) {
  const hops: Hop[] = []
  const received: { readonly at: number; readonly origin: number; readonly content: string }[] = []
  const queue: (() => void)[] = []
  const send = (from: number, to: number, message: unknown) => {
    hops.push({ from, to })
    const deliver = () => {
      const arrived = to === down ? undefined : routing.receive(to, from, message)
      if (arrived) received.push({ at: to, origin: arrived.origin, content: arrived.content })
    }
    for (let copy = 0; copy < copies; copy++) queue.push(deliver)
  }
  const neighbours = (node: number) => topology.neighbours[node]
  const routing = new Routing<string>({ topology, neighbours, send } as unknown as World)
  const run = () => {
    for (const deliver of queue) deliver()
  }
  return { routing, hops, received, run }
}

/** The node that a service is at. */
const placeOf = (node: number) => Math.max(0, node)

describe('routing', () => {
  it('takes a message to its receiver over edges of the tree, none of them twice', () => {
    fc.assert(
      fc.property(trees, fc.nat(), fc.nat(), (topology, a, b) => {
        const { nodes } = topology
        const [from, to] = [(a % (nodes + 1)) - 1, (b % (nodes + 1)) - 1]
        fc.pre(from !== to)
        const { routing, hops, received, run } = network(topology)
        routing.send(from, to, 'a', 4)
        run()
        assert.deepEqual(received, [{ at: to, origin: from, content: 'a' }])
        assert.equal(hops.length, routing.hops(from, to))
        assert.equal(new Set(hops.map(hop => hop.from)).size, hops.length)
        for (const hop of hops) {
          const [x, y] = [placeOf(hop.from), placeOf(hop.to)]
          assert.ok(x === y || topology.neighbours[x].includes(y), `${hop.from} to ${hop.to}`)
        }
      })
    )
  })

  it('loses a message at a relay that is down', () => {
    const { routing, hops, received, run } = network(
      fromParents(5, i => i - 1),
      { down: 2 }
    )
    routing.send(4, 0, 'a', 4)
    routing.broadcast(0, 'b', 4)
    run()
    assert.deepEqual(received, [{ at: 1, origin: 0, content: 'b' }])
    assert.equal(hops.length, 4)
  })

  it('takes a broadcast over every edge once, also if messages arrive twice', () => {
    fc.assert(
      fc.property(trees, fc.nat(), fc.integer({ min: 1, max: 2 }), (topology, draw, copies) => {
        const from = draw % topology.nodes
        const { routing, hops, received, run } = network(topology, { copies })
        routing.broadcast(from, 'a', 4)
        run()
        assert.equal(hops.length, topology.nodes - 1)
        assert.equal(new Set(received.map(({ at }) => at)).size, topology.nodes - 1)
        assert.equal(received.length, topology.nodes - 1)
        assert.ok(received.every(({ at, origin }) => origin === from && at !== from))
      })
    )
  })

  it('does not take a broadcast further where a newer one has passed', () => {
    const messages: unknown[] = []
    const neighbours = (node: number) => [[1], [0, 2], [1]][node]
    const send = (from: number, _to: number, message: unknown) => from === 0 && messages.push(message)
    const topology = fromParents(3, i => i - 1)
    const reordered = new Routing<string>({ topology, neighbours, send } as unknown as World)
    reordered.broadcast(0, 'old', 4)
    reordered.broadcast(0, 'new', 4)
    assert.equal(reordered.receive(1, 0, messages[1])?.content, 'new')
    assert.equal(reordered.receive(1, 0, messages[0]), undefined)
  })

  it('follows the edges that the tree has now', () => {
    const links = [[1], [0, 2], [1]]
    const topology = fromParents(3, i => i - 1)
    const routing = new Routing<string>({ topology, neighbours: (node: number) => links[node] } as unknown as World)
    assert.equal(routing.hops(2, 0), 2)
    links[0] = [2]
    links[2] = [0]
    routing.connections.connect?.(0, 2, 1)
    assert.deepEqual([routing.hops(2, 0), routing.hops(1, 0)], [1, 0])
  })
})

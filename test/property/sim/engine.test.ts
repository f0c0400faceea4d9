/** The simulator's event queue, topologies and session channels, for drawn inputs. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { type Event, EventQueue } from '../../../sim/engine/queue.js'
import { Random } from '../../../sim/engine/random.js'
import { createTopology, linkGraph, topologyNames } from '../../../sim/topology.js'
import type { SessionChannel } from '../../../sim/wiring/wiring.js'
import { TransportHarness } from '../../support/transport-harness.js'

/** Number of nodes that are connected with node 0. */
function reached(neighbours: readonly (readonly number[])[]): number {
  const seen = new Set([0])
  for (const node of seen) for (const other of neighbours[node]) seen.add(other)
  return seen.size
}

describe('EventQueue', () => {
  it('orders events by time, then rank, then insertion', () => {
    const event = fc.record({ time: fc.integer({ min: 0, max: 20 }), rank: fc.integer({ min: 0, max: 1 }) })
    fc.assert(
      fc.property(fc.array(event, { maxLength: 3000 }), events => {
        const queue = new EventQueue()
        for (const [i, { time, rank }] of events.entries()) queue.push(time, 0, i, 0, rank)
        const expected = events
          .map((one, i) => ({ ...one, i }))
          .sort((a, b) => a.time - b.time || a.rank - b.rank || a.i - b.i)
        const popped: Event = { time: 0, kind: 0, a: 0, b: 0 }
        for (const { i, time } of expected) {
          assert.equal(queue.nextTime, time)
          assert.ok(queue.pop(popped))
          assert.equal(popped.a, i)
        }
        assert.ok(!queue.pop(popped))
      }),
      { numRuns: 50 }
    )
  })
})

describe('topologies', () => {
  it('are trees, within the degree if they guarantee one', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...topologyNames),
        fc.integer({ min: 1, max: 60 }),
        fc.integer({ min: 2, max: 6 }),
        fc.nat(),
        (name, nodes, degree, seed) => {
          const { neighbours, diameter } = createTopology(
            { topology: name, nodes, degree, linkDegree: degree },
            new Random(seed)
          )
          assert.equal(
            neighbours.reduce((sum, list) => sum + list.length, 0),
            2 * (nodes - 1)
          )
          assert.equal(reached(neighbours), nodes)
          assert.ok(diameter <= Math.max(0, nodes - 1))
          if (name === 'tree' || name === 'random') assert.ok(neighbours.every(list => list.length <= degree))
        }
      )
    )
  })
})

describe('the link graph', () => {
  it('is connected, and most nodes have the maximum degree', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 80 }), fc.integer({ min: 2, max: 8 }), fc.nat(), (nodes, degree, seed) => {
        const links = linkGraph(nodes, degree, new Random(seed))
        assert.equal(reached(links), nodes)
        for (const [node, others] of links.entries()) {
          assert.ok(others.length <= degree && !others.includes(node))
          assert.ok(others.every(other => links[other].includes(node)))
        }
        // A matching may repeat links, which matters in small graphs.
        if (nodes > 8 * degree) assert.ok(links.flat().length > 0.75 * nodes * degree)
      })
    )
  })
})

describe('the transport', () => {
  it('delivers all messages of a session in order, also with losses', () => {
    fc.assert(
      fc.property(fc.nat(), fc.constantFrom(0, 0.3), (seed, loss) => {
        const harness = new TransportHarness({ delay: 'exponential', reorder: 0.3, duplicate: 0.3, loss }, seed)
        const session: SessionChannel = { lastArrival: 0, held: [] }
        const numbers = Array.from({ length: 30 }, (_, i) => i)
        for (const i of numbers) harness.send(i, { channel: session })
        harness.run()
        assert.deepEqual(harness.order, numbers)
      })
    )
  })
})

/**
 * ADMB without faults: updates within the bound of Theorem 2 on every tree and labelling; an isolated node learns alone; stale
 * coverage disappears after rewiring; only the latest sum of a neighbour matters.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { formatId, type Precedence } from '../../../src/admb/index.js'
import { World } from '../../support/admb-network.js'
import { share } from '../../support/runs.js'

/** A random tree: parents[i] < i + 1 is a neighbour of node i + 1. */
const tree = fc
  .integer({ min: 1, max: 9 })
  .chain(n => fc.tuple(...Array.from({ length: n }, (_, i) => fc.integer({ min: 0, max: i }))))

function diameter(parents: readonly number[]): number {
  const distance = [[0]]
  for (const parent of parents) {
    const row = distance[parent].map(d => d + 1)
    for (let j = 0; j < distance.length; j++) distance[j].push(row[j])
    distance.push([...row, 0])
  }
  return Math.max(...distance.flat())
}

/**
 * Every node makes one update alone, then the tree is connected.
 * @returns number of inputs until every node holds two updates
 */
function inputsUntilSecond(
  origins: string[],
  parents: readonly number[],
  batch: number,
  precedence: Precedence
): number {
  const world = new World({ origins, batch, carry: 0, precedence, inputs: 16 * batch * origins.length })
  for (let h = 0; h < origins.length; h++) for (let i = 0; i < batch; i++) world.input(h)
  for (const [i, parent] of parents.entries()) world.connect(i + 1, parent)
  const before = world.inputs.length
  while (world.hosts.some(({ node }) => node.predictor.id.updates < 2)) {
    for (let h = 0; h < origins.length; h++) world.input(h)
    world.round()
  }
  return world.inputs.length - before
}

/** ν of Theorem 2 with T = 1 round and M = nodes inputs per round. */
const bound = (batch: number, nodes: number, d: number) => batch + 2 * 3 * d * nodes

describe('ADMB without faults', () => {
  it('updates within the inputs of Theorem 2 on random trees with random labels', function () {
    this.timeout(120_000)
    fc.assert(
      fc.property(tree, fc.integer({ min: 1, max: 60 }), fc.infiniteStream(fc.nat(1e6)), (parents, batch, labels) => {
        const nodes = parents.length + 1
        const origins = [...labels.take(nodes)].map((label, i) => `${label}-${i}`)
        const inputs = inputsUntilSecond(origins, parents, batch, 'origin')
        const limit = bound(batch, nodes, diameter(parents))
        assert.ok(inputs <= limit, `${inputs} inputs, more than ${limit}`)
      }),
      { numRuns: share(300) }
    )
  })

  it('propagates the highest number of updates within the diameter (Lemma 1)', () => {
    fc.assert(
      fc.property(tree, fc.integer({ min: 1, max: 9 }), fc.nat(), (parents, updates, ahead) => {
        const nodes = parents.length + 1
        const origins = Array.from({ length: nodes }, (_, i) => `n${i}`)
        const world = new World({ origins, batch: 3, carry: 0 })
        for (let i = 0; i < 3 * updates; i++) world.input(ahead % nodes)
        for (const [i, parent] of parents.entries()) world.connect(i + 1, parent)
        for (let r = 0; r < diameter(parents); r++) world.round()
        for (const { node } of world.hosts) assert.ok(node.predictor.id.updates >= updates)
      }),
      { numRuns: 200 }
    )
  })

  it('shares gradients on the path 1-5-2 with precedence by origin, but not by sender', () => {
    const origins = ['1', '5', '2']
    const byOrigin = inputsUntilSecond(origins, [0, 1], 200, 'origin')
    const bySender = inputsUntilSecond(origins, [0, 1], 200, 'sender')
    assert.ok(byOrigin <= 1.25 * 200, `${byOrigin} inputs by origin`)
    assert.ok(bySender >= 2.8 * 200, `${bySender} inputs by sender`)
  })

  it('updates an isolated node at every b-th input', () => {
    const world = new World({ origins: ['a'], batch: 7, carry: 5 })
    for (let i = 1; i <= 70; i++) {
      world.input(0)
      if (i % 3 === 0) world.tick(0)
      assert.equal(world.hosts[0].node.predictor.id.updates, Math.floor(i / 7))
    }
  })

  it('drops the coverage of a lost neighbour within the diameter', () => {
    const world = new World({ origins: ['a', 'b', 'c', 'd', 'e'], batch: 100, carry: 0 })
    const links = [1, 2, 3, 4].map(h => world.connect(h, h - 1))
    for (let h = 0; h < 5; h++) world.input(h)
    for (let r = 0; r < 6; r++) world.round()
    assert.equal(world.hosts[0].node.gradients, 5)
    world.cut(links[3], 0)
    world.cut(links[3], 1)
    for (let r = 0; r < 3; r++) world.round()
    for (let h = 0; h < 4; h++) assert.equal(world.hosts[h].node.gradients, 4, `node ${h}`)
    assert.equal(world.hosts[4].node.gradients, 1)
  })

  it('sends nothing when nothing changes', () => {
    const world = new World({ origins: ['a', 'b', 'c'], batch: 10, carry: 5 })
    const links = [world.connect(1, 0), world.connect(2, 1)]
    for (let i = 0; i < 25; i++) world.input(i % 3)
    for (let r = 0; r < 10; r++) world.round()
    for (let r = 0; r < 200; r++) {
      for (let h = 0; h < 3; h++) world.tick(h)
      for (const link of links) for (const side of [0, 1] as const) assert.ok(!world.send(link, side), `round ${r}`)
    }
  })

  it('converges if the first frames of both ends are lost, and then sends nothing', () => {
    for (const survivor of [undefined, 0, 1]) {
      const world = new World({ origins: ['a', 'b'], batch: 10, carry: 5 })
      const link = world.connect(0, 1)
      for (const side of [0, 1] as const) world.send(link, side)
      for (const side of [0, 1] as const) if (side !== survivor) link.inFlight[side].pop()
      for (let i = 0; i < 13; i++) world.input(i % 2)
      for (let r = 0; r < 20; r++) world.round()
      const [a, b] = world.hosts.map(({ node }) => node)
      assert.equal(formatId(a.predictor.id), formatId(b.predictor.id))
      assert.equal(a.gradients, b.gradients)
      for (let r = 0; r < 200; r++) {
        for (let h = 0; h < 2; h++) world.tick(h)
        for (const side of [0, 1] as const) assert.ok(!world.send(link, side), `round ${r}`)
      }
    }
  })

  it('needs only the latest sum of an edge', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.integer({ min: 1, max: 9 }), fc.boolean()), { maxLength: 20 }), steps => {
        const every = new World({ origins: ['a', 'b'], batch: 1000, carry: 0 })
        const latest = new World({ origins: ['a', 'b'], batch: 1000, carry: 0 })
        for (const world of [every, latest]) {
          const link = world.connect(0, 1)
          world.flush()
          steps.forEach(([inputs, delivered], s) => {
            for (let i = 0; i < inputs; i++) world.input(0)
            world.tick(0)
            world.send(link, 0)
            const lost = world === latest && !delivered && s < steps.length - 1
            if (lost) link.inFlight[1].pop()
            else world.deliver(link, 1, 0, false)
          })
        }
        assert.equal(latest.hosts[1].node.gradients, every.hosts[1].node.gradients)
        assert.equal(formatId(latest.hosts[1].node.predictor.id), formatId(every.hosts[1].node.predictor.id))
      }),
      { numRuns: share(300) }
    )
  })
})

/** Cycles, which exist while a tree is rewired: gradients that reach a node on two routes count once. */
import assert from 'node:assert/strict'
import { type Link, total, World } from '../../support/admb-network.js'

describe('on a cycle', () => {
  it('counts a gradient once, even if it arrives with the frame that carries the predictor', () => {
    const world = new World({ origins: ['x', 'y', 'z'], batch: 3, carry: 9 })
    const [xy, xz, yz] = [world.connect(0, 1), world.connect(0, 2), world.connect(1, 2)]
    world.flush()
    // At x the sums of both neighbours contain y's gradient.
    world.input(1)
    for (let r = 0; r < 3; r++) world.round()
    assert.equal(world.hosts[0].node.gradients, 1)
    // y updates, and its frames are lost; the repeated frames contain a gradient for the new predictor as well.
    for (let i = 0; i < 3; i++) world.input(1)
    for (const link of [xy, yz]) {
      const side = link.ends.indexOf(1) as 0 | 1
      world.send(link, side)
      link.inFlight[1 - side].pop()
    }
    for (let period = 0; period < 20; period++) world.tick(1)
    for (const link of [xy, yz]) {
      const side = link.ends.indexOf(1) as 0 | 1
      world.send(link, side)
      world.deliver(link, (1 - side) as 0 | 1, 0, false)
    }
    assert.deepEqual(
      world.hosts.map(({ node }) => [node.predictor.id.updates, node.gradients]),
      [
        [1, 1],
        [1, 1],
        [1, 1]
      ]
    )
    for (let r = 0; r < 3; r++) world.round()
    assert.deepEqual(
      world.hosts.map(({ node }) => node.gradients),
      [1, 1, 1]
    )
    for (let i = 0; i < 2; i++) world.input(0)
    const [x] = world.hosts
    assert.equal(x.node.predictor.id.updates, 2)
    assert.equal(total(x.node.predictor.parameters[0]), 6)
    assert.equal(xz.up[0], true)
  })

  it('updates as soon as a larger sum that excluded smaller ones is dropped', () => {
    const world = new World({ origins: ['a', 'b', 'c', 'd'], batch: 9, carry: 9 })
    const before = [1, 2].map(h => world.connect(h, 3))
    const links = [3, 1, 2].map(h => world.connect(h, 0))
    world.flush()
    for (const h of [1, 1, 2, 2, 3, 3]) world.input(h)
    sendStates(world, before)
    // b and c lose their sessions and continue, unnoticed by d. At a, the sum of d is the largest and overlaps with both of theirs.
    for (const link of before) world.cut(link, 0)
    for (const h of [1, 1, 1, 2, 2, 2]) world.input(h)
    sendStates(world, links)
    const { node } = world.hosts[0]
    assert.deepEqual(
      links.map(({ number }) => node.inspect.neighbourSum(number)?.count),
      [6, 5, 5]
    )
    assert.equal(node.gradients, 6)
    world.cut(links[0], 1)
    assert.equal(node.predictor.id.updates, 1)
    assert.equal(total(node.predictor.parameters[0]), 10)
  })
})

/** The first end of each link sends its state to the other. */
function sendStates(world: World, links: readonly Link[]): void {
  for (const link of links) {
    world.tick(link.ends[0])
    world.send(link, 0)
    while (link.inFlight[1].length > 0) world.deliver(link, 1, 0, false)
  }
}

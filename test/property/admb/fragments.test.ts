/**
 * Fragmented frames, which large models use, here with small models. A fragmented frame must have the same effect as a whole one,
 * and its fragments must have no effect before the frame arrives.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { AdmbNode, formatId, isFragment } from '../../../src/admb/index.js'
import { World } from '../../support/admb-network.js'
import { addToyGradient, exchange, latticeToy, toyLayout, toyStart } from '../../support/toy.js'

const state = ({ hosts }: World) =>
  hosts.map(({ node }) => [formatId(node.predictor.id), node.predictor.id.digest, node.gradients, node.ownGradients])

describe('fragmented frames', () => {
  it('have the same effect as whole frames, whether gradients are streamed or not', function () {
    this.timeout(120_000)
    const inputs = fc.array(fc.tuple(fc.nat(4), fc.boolean()), { minLength: 10, maxLength: 120 })
    const tree = fc.tuple(fc.constant(0), fc.nat(1), fc.nat(2), fc.nat(3))
    const batches = fc.integer({ min: 2, max: 30 })
    const sizes = fc.constantFrom(0, 60, 1100)
    let streamed = 0
    fc.assert(
      fc.property(
        inputs,
        tree,
        batches,
        sizes,
        fc.constantFrom(0, 65536),
        fc.boolean(),
        (steps, parents, batch, fragmentBytes, pushBytes, isLattice) => {
          const worlds = [undefined, fragmentBytes].map(fragmentBytes => {
            const world = new World({
              origins: ['c', 'a', 'e', 'b', 'd'],
              batch,
              carry: 9,
              pushBytes,
              fragmentBytes,
              isLattice,
              isOrdered: true
            })
            for (const [i, parent] of parents.entries()) world.connect(i + 1, parent)
            world.flush()
            return world
          })
          for (const [h, isRoundOver] of steps) {
            worlds[0].input(h)
            worlds[1].input(h, 'blocks', false)
            for (const link of worlds[1].links.values()) for (const bag of link.inFlight) streamed += bag.length
            for (const world of worlds) {
              world.flush()
              if (isRoundOver) world.round()
            }
            if (isRoundOver) assert.deepEqual(state(worlds[1]), state(worlds[0]))
          }
        }
      ),
      { numRuns: 300 }
    )
    assert.ok(streamed > 500, `only ${streamed} fragments were streamed`)
  })

  it('are streamed while the gradient is being added, and take effect when the frame arrives', () => {
    for (const [batch, fills] of [
      [10, false],
      [3, true]
    ] as const) {
      const world = new World({ origins: ['a', 'b'], batch, carry: 9, fragmentBytes: 0 })
      const link = world.connect(0, 1)
      world.flush()
      for (let i = 0; i < 2; i++) world.input(0)
      world.round()
      const [a, b] = world.hosts.map(({ node }) => node)
      a.startStreaming(1, [link.number], true)
      addToyGradient(a.accumulator, 2)
      const fragments = [2, 1, 0].flatMap(block => a.blockReady(block))
      assert.equal(fragments.length, 3)
      const before = formatId(b.predictor.id)
      for (const { bytes } of fragments) b.receive(link.number, bytes)
      assert.equal(b.gradients, 2)
      a.added(1)
      const frame = a.frame(link.number)
      assert.ok(frame && !isFragment(frame))
      assert.equal(b.gradients, 2)
      b.receive(link.number, frame)
      assert.equal(formatId(b.predictor.id), formatId(a.predictor.id))
      if (fills) assert.notEqual(formatId(b.predictor.id), before)
      else assert.equal(b.gradients, 3)
    }
  })

  it('replace streamed ones if the step takes fewer bytes than its difference from the sums before', () => {
    const layout = toyLayout(64)
    const initial = toyStart(64, latticeToy)
    const options = { ...latticeToy, layout, initial, incarnation: 1, batch: 2, fragmentBytes: 0, isOrdered: true }
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 20, maxLength: 60 }), gradient => {
        const [a, b] = ['a', 'b'].map(self => new AdmbNode({ ...options, self }))
        a.connect(1, 1, 'b')
        b.connect(1, 1, 'a')
        exchange(a, b)
        // The gradients cancel each other out.
        for (const sign of [1, -1]) {
          a.startStreaming(1, [1], true)
          for (const [i, value] of gradient.entries()) a.accumulator[0][i] += sign * value
          for (const { bytes } of [2, 1, 0].flatMap(block => a.blockReady(block))) b.receive(1, bytes)
          a.added(1)
          exchange(a, b)
        }
        assert.deepEqual(
          b.takeEffects().map(({ kind }) => kind),
          ['adopted']
        )
        assert.deepEqual(b.predictor.id, a.predictor.id)
      })
    )
  })

  it('have no effect if a fragment is lost, and the predictor arrives nevertheless', () => {
    for (let lost = 0; lost < 8; lost++) {
      const world = new World({ origins: ['a', 'b'], batch: 4, carry: 9, fragmentBytes: 0 })
      for (let i = 0; i < 9; i++) world.input(0)
      const link = world.connect(0, 1)
      for (let sent = 0; world.send(link, 1) || world.send(link, 0); ) {
        while (link.inFlight[0].length > 0) world.deliver(link, 0, 0, false)
        if (link.inFlight[1].length > 0 && sent++ === lost) link.inFlight[1].pop()
        while (link.inFlight[1].length > 0) world.deliver(link, 1, 0, false)
      }
      for (let r = 0; r < 20; r++) world.round()
      assert.deepEqual(state(world)[0].slice(0, 3), state(world)[1].slice(0, 3), `frame ${lost} lost`)
    }
  })

  it('are dropped with their session', () => {
    const world = new World({ origins: ['a', 'b'], batch: 4, carry: 9, fragmentBytes: 0 })
    for (let i = 0; i < 9; i++) world.input(0)
    const first = world.connect(0, 1)
    for (let i = 0; i < 3; i++) {
      world.send(first, 1)
      world.send(first, 0)
      for (const side of [0, 1] as const) while (first.inFlight[side].length > 0) world.deliver(first, side, 0, false)
    }
    assert.equal(world.hosts[1].node.predictor.id.updates, 0)
    for (const side of [0, 1] as const) world.cut(first, side)
    world.connect(0, 1)
    for (let r = 0; r < 9; r++) world.round()
    assert.deepEqual(state(world)[0].slice(0, 3), state(world)[1].slice(0, 3))
  })
})

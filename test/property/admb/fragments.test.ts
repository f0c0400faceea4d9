/**
 * Fragmented frames, which large models use, here with small models. A fragmented frame must have the same effect as a whole one,
 * and its fragments must have no effect before the frame arrives.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { formatId, isFragment } from '../../../src/admb/index.js'
import { World } from '../../support/admb-network.js'
import { addToyGradient } from '../../support/toy.js'

const state = ({ hosts }: World) =>
  hosts.map(({ node }) => [formatId(node.predictor.id), node.predictor.id.digest, node.gradients, node.ownGradients])

describe('fragmented frames', () => {
  it('have the same effect as whole frames', function () {
    this.timeout(120_000)
    const inputs = fc.array(fc.tuple(fc.nat(4), fc.boolean()), { minLength: 10, maxLength: 120 })
    const tree = fc.tuple(fc.constant(0), fc.nat(1), fc.nat(2), fc.nat(3))
    const batches = fc.integer({ min: 2, max: 30 })
    const sizes = fc.constantFrom(0, 60, 1100)
    let fragments = 0
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
            for (const world of worlds) {
              world.input(h)
              world.flush()
              if (isRoundOver) world.round()
            }
            if (isRoundOver) assert.deepEqual(state(worlds[1]), state(worlds[0]))
          }
          fragments += worlds[1].fragments
        }
      ),
      { numRuns: 300 }
    )
    assert.ok(fragments > 500, `only ${fragments} fragments were sent`)
  })

  it('take effect when the frame arrives', () => {
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
      addToyGradient(a.accumulator, 2)
      a.added(1)
      a.tick()
      const before = formatId(b.predictor.id)
      for (let i = 0; i < 3; i++) {
        const fragment = a.frame(link.number)
        assert.ok(fragment && isFragment(fragment))
        b.receive(link.number, fragment)
      }
      const frame = a.frame(link.number)
      assert.ok(frame && !isFragment(frame))
      assert.equal(b.gradients, 2)
      b.receive(link.number, frame)
      assert.equal(formatId(b.predictor.id), formatId(a.predictor.id))
      if (fills) assert.notEqual(formatId(b.predictor.id), before)
      else assert.equal(b.gradients, 3)
    }
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

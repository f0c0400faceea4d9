/** Fragments, which large models use, here of a small one: their effect is that of the frame. And what nodes send at rest: nothing. */
import assert from 'node:assert/strict'
import { formatId, isFragment } from '../../../src/admb/index.js'
import { addToyGradient, latticeToy, toy } from '../../support/toy.js'
import { ToyPath } from '../../support/toy-path.js'

describe('fragmented frames', () => {
  for (const [name, recipe] of Object.entries({ float32: toy, integer: latticeToy }))
    it(`have the same effect as whole frames, with ${name} sums`, () => {
      for (const batch of [2, 3, 7, 30])
        for (const fragmentBytes of [0, 60]) {
          const [whole, divided] = [undefined, fragmentBytes].map(
            bytes => new ToyPath({ inputs: 120, batch, recipe, all: { fragmentBytes: bytes, isOrdered: true } })
          )
          for (let input = 0; input < 120; input++) {
            for (const path of [whole, divided]) path.learn((input * 7) % 3, input)
            const states = [whole, divided].map(({ nodes }) =>
              nodes.map(node => [formatId(node.predictor.id), node.gradients, node.ownGradients])
            )
            assert.deepEqual(states[1], states[0])
          }
        }
    })

  it('take effect when the frame arrives', () => {
    for (const [batch, fills] of [
      [10, false],
      [3, true]
    ] as const) {
      const path = new ToyPath({ inputs: 8, batch, all: { fragmentBytes: 0 } })
      path.learn(0, 0, 2)
      const [a, b] = path.nodes
      addToyGradient(a.accumulator, 2)
      a.added(1)
      a.tick()
      const before = formatId(b.predictor.id)
      for (let i = 0; i < 3; i++) {
        const fragment = a.frame(1)
        assert.ok(fragment && isFragment(fragment))
        b.receive(1, fragment)
      }
      const frame = a.frame(1)
      assert.ok(frame && !isFragment(frame))
      assert.equal(b.gradients, 2)
      b.receive(1, frame)
      assert.equal(formatId(b.predictor.id), formatId(a.predictor.id))
      if (fills) assert.notEqual(formatId(b.predictor.id), before)
      else assert.equal(b.gradients, 3)
    }
  })
})

describe('nodes at rest', () => {
  it('send nothing', () => {
    const path = new ToyPath({ inputs: 25, batch: 10 })
    for (let input = 0; input < 25; input++) path.learn(input % 3, input)
    for (let period = 0; period < 200; period++)
      for (const [n, node] of path.nodes.entries()) {
        node.tick()
        for (const edge of [[1], [1, 2], [2]][n]) assert.equal(node.frame(edge), undefined, `period ${period}`)
      }
  })
})

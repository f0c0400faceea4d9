/** Updates of arbitrary numbers: the look-ahead is what the update yields, and neighbours replay steps of any kind of blocks. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { AdmbNode, sameId } from '../../../src/admb/index.js'
import { exchange, latticeToy, toy, toyLayout, toyStart } from '../../support/toy.js'

const INPUTS = 40
const layout = toyLayout(INPUTS)

/** Small integers, which steps store compactly, or any numbers. */
const gradient = fc.oneof(
  fc.array(fc.tuple(fc.nat(INPUTS - 1), fc.integer({ min: -3, max: 3 })), { maxLength: 6 }),
  fc.array(fc.tuple(fc.nat(INPUTS - 1), fc.float({ min: -100, max: 100, noNaN: true })), {
    minLength: INPUTS,
    maxLength: 90
  })
)

function create(recipe: typeof toy, self: string, batch: number): AdmbNode {
  return new AdmbNode({ ...recipe, self, incarnation: 1, layout, initial: toyStart(INPUTS, recipe), batch, carry: 9 })
}

function learn(node: AdmbNode, values: readonly (readonly [number, number])[]): void {
  for (const [i, value] of values) node.accumulator[0][i] += value
  node.accumulator[2][0] += 1
  node.added(1)
}

for (const [name, recipe] of [
  ['numbers', toy],
  ['integers', latticeToy]
] as const) {
  describe(`updates of ${name}`, () => {
    it('yield the running average that the node has looked ahead to', () => {
      fc.assert(
        fc.property(fc.array(gradient, { minLength: 1, maxLength: 8 }), fc.nat(7), (gradients, closed) => {
          const [node, other] = [create(recipe, 'a', 1000), create(recipe, 'b', 1000)]
          node.connect(1, 1, 'b')
          other.connect(1, 1, 'a')
          assert.deepEqual(node.lookAhead(), node.predictor.average)
          for (const [i, values] of gradients.entries()) {
            learn(i % 3 === 2 ? other : node, values)
            if (i === closed) exchange(node, other)
          }
          exchange(other, node)
          // This one is in no closed segment.
          learn(node, gradients[0])
          const before = node.predictor
          const ahead = node.lookAhead().map(block => block.slice())
          assert.equal(node.predictor, before)
          assert.deepEqual(
            node.lookAhead().map(block => block.slice()),
            ahead,
            'looking ahead changes the state'
          )
          node.useRemainder()
          assert.equal(node.predictor.id.updates, 1)
          assert.deepEqual(
            node.predictor.average.map(block => [...block]),
            ahead.map(block => [...block])
          )
        }),
        { numRuns: 60 }
      )
    })

    it('are replayed by a neighbour that has missed some', () => {
      fc.assert(
        fc.property(fc.array(gradient, { minLength: 2, maxLength: 12 }), gradients => {
          const [a, b] = [create(recipe, 'a', 1), create(recipe, 'b', 1)]
          a.connect(1, 1, 'b')
          b.connect(1, 1, 'a')
          exchange(a, b)
          for (const values of gradients) learn(a, values)
          exchange(a, b)
          assert.ok(sameId(a.predictor.id, b.predictor.id))
          assert.deepEqual(b.predictor.parameters, a.predictor.parameters)
          const refused = b.takeEffects().filter(({ kind }) => kind === 'refused')
          assert.deepEqual(refused, [])
          learn(b, gradients[0])
          exchange(a, b)
          assert.ok(sameId(a.predictor.id, b.predictor.id))
          assert.equal(a.predictor.id.updates, gradients.length + 1)
        }),
        { numRuns: 60 }
      )
    })
  })
}

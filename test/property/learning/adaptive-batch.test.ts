/** The block of b: within its bounds whatever peers send, and without influence on the other blocks. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { AdaptiveBatch, createAveraging, createLearner, createRule, digest } from '../../../src/learning/index.js'

const range = fc
  .tuple(fc.integer({ min: 1, max: 5000 }), fc.integer({ min: 0, max: 5000 }))
  .map(([min, more]) => ({ min, max: min + more }))
const anyNumber = fc.oneof(fc.float(), fc.integer({ min: 0, max: 1000 }))

describe('a batch size that adapts', () => {
  it('stays within its bounds, whatever a sum contains', () => {
    fc.assert(
      fc.property(range, anyNumber, fc.array(fc.tuple(anyNumber, fc.integer({ min: 1, max: 5000 }))), (...drawn) => {
        const [bounds, first, batches] = drawn
        const batch = new AdaptiveBatch(bounds)
        let b = first
        for (const [unshared, count] of batches) {
          b = batch.next(b, unshared, count)
          assert.ok(b >= bounds.min && b <= bounds.max, `${b}`)
        }
        const whole = batch.of([new Float32Array(3), Float32Array.of(b)])
        assert.ok(Number.isInteger(whole) && whole >= bounds.min && whole <= bounds.max, `${whole}`)
      })
    )
  })

  it('grows with the share of gradients that no neighbour could use', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1000 }), fc.integer({ min: 0, max: 1000 }), (count, more) => {
        const batch = new AdaptiveBatch({ min: 1, max: 4096 })
        const [few, many] = [Math.min(count, more) / 2, Math.min(count, more)]
        assert.ok(batch.next(100, few, count) <= batch.next(100, many, count))
        assert.ok(batch.next(100, 0, count) < 100 && batch.next(100, count, count) > 100)
      })
    )
  })

  it('does not change what is learned', () => {
    const plain = createLearner({ model: 'logistic', dimension: 2 })
    const batch = new AdaptiveBatch({ min: 4, max: 64 })
    const learner = batch.learner(plain)
    const parts = { rule: createRule(), averaging: createAveraging(), digest }
    const { rule, averaging } = batch.recipe(parts)
    const gradients = fc.array(fc.tuple(fc.float({ noNaN: true, min: -9, max: 9 }), fc.integer({ min: 1, max: 99 })))
    fc.assert(
      fc.property(gradients, batches => {
        let one = { parameters: plain.initial(), state: zeros(parts.rule.stateLayout(plain.layout)) }
        let average = one.parameters
        let other = { parameters: learner.initial(), state: zeros(rule.stateLayout(learner.layout)) }
        let otherAverage = other.parameters
        for (const [updates, [value, count]] of batches.entries()) {
          const sum = Float32Array.of(value, -value / 3)
          one = copy(parts.rule.step(one, [sum], count, updates))
          const before = other.parameters
          other = copy(rule.step(other, [sum, Float32Array.of(count / 2)], count, updates))
          average = [...parts.averaging.average(average, one.parameters, updates)]
          otherAverage = averaging.average(otherAverage, other.parameters, updates, before)
        }
        assert.deepEqual(other.parameters[0], one.parameters[0])
        assert.deepEqual(other.state, one.state)
        assert.deepEqual(otherAverage, [...average, other.parameters[1]])
      })
    )
  })
})

function zeros({ blocks }: ReturnType<ReturnType<typeof createRule>['stateLayout']>): Float32Array[] {
  return blocks.map(({ length }) => new Float32Array(length))
}

function copy({ parameters, state }: { parameters: readonly Float32Array[]; state: readonly Float32Array[] }) {
  return { parameters: [...parameters], state: [...state] }
}

/** The block of b: within its bounds whatever peers send, and without influence on the other blocks. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import {
  AdaptiveBatch,
  carry,
  createAveraging,
  createLearner,
  createRule,
  digest
} from '../../../src/learning/index.js'

const range = fc
  .tuple(fc.integer({ min: 1, max: 5000 }), fc.integer({ min: 0, max: 5000 }))
  .map(([min, more]) => ({ min, max: min + more }))
const anyNumber = fc.oneof(fc.float(), fc.integer({ min: 0, max: 1000 }))

const WEIGHTS = { blocks: [{ name: 'weights', length: 3 }] }

function next(batch: AdaptiveBatch, before: number, unshared: number, count: number): number {
  return batch.next(Float32Array.of(before), Float32Array.of(unshared), count)[0]
}

describe('a batch size that adapts', () => {
  it('stays within its bounds, whatever a sum contains', () => {
    fc.assert(
      fc.property(range, anyNumber, fc.array(fc.tuple(anyNumber, fc.integer({ min: 1, max: 5000 }))), (...drawn) => {
        const [bounds, first, batches] = drawn
        const batch = new AdaptiveBatch(bounds, WEIGHTS)
        let b = first
        for (const [unshared, count] of batches) {
          b = next(batch, b, unshared, count)
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
        const batch = new AdaptiveBatch({ min: 1, max: 4096 }, WEIGHTS)
        const [few, many] = [Math.min(count, more) / 2, Math.min(count, more)]
        assert.ok(next(batch, 100, few, count) <= next(batch, 100, many, count))
        assert.ok(next(batch, 100, 0, count) < 100 && next(batch, 100, count, count) > 100)
      })
    )
  })

  it('does not change what is learned', () => {
    const plain = createLearner({ model: 'logistic', dimension: 2 })
    const batch = new AdaptiveBatch({ min: 4, max: 64 }, plain.layout)
    const parts = { rule: createRule(), averaging: createAveraging(), digest }
    const { learner, recipe } = carry({ learner: plain, recipe: parts }, [batch])
    const { rule, averaging } = recipe
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

/** Clipping of gradients per input: no input changes a sum by more than the limit, whatever its features, weight and repetitions are. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { createLearner } from '../../../src/learning/index.js'
import { examplesOf } from '../../support/learning/rows.js'

const dimension = 6
const value = fc.oneof(fc.double({ min: -2, max: 2, noNaN: true }), fc.double({ min: -1e6, max: 1e6, noNaN: true }))
const float = value.map(Math.fround)
/** Gradients of such numbers are not refused as too large. */
const moderate = fc.double({ min: -1e3, max: 1e3, noNaN: true }).map(Math.fround)

for (const model of ['logistic', 'hinge', 'linear', 'softmax'] as const) {
  const classes = model === 'softmax' ? 3 : undefined
  const length = dimension * (classes ?? 1)
  const feature = fc.nat({ max: dimension - 1 })
  const label = model === 'linear' ? float : fc.nat({ max: (classes ?? 2) - 1 })
  const weight = fc.float({ min: 0, max: 100, noNaN: true })
  const weights = (number: fc.Arbitrary<number>) =>
    fc.array(number, { minLength: length, maxLength: length }).map(numbers => [Float32Array.from(numbers)])
  const limit = fc.double({ min: 1e-3, max: 10, noNaN: true })

  describe(`clipping of inputs, model ${model}`, () => {
    it('bounds the gradient of each input', () => {
      const features = fc.array(fc.tuple(feature, float), { maxLength: 9 })
      const repeating = fc.record({ label, features, weight })
      fc.assert(
        fc.property(repeating, weights(float), limit, (row, parameters, clip) => {
          const sum = [new Float32Array(length)]
          const learner = createLearner({ model, dimension, classes, clip })
          learner.addGradient(parameters, examplesOf([row]), 0, 1, sum)
          assert.ok(Math.hypot(...sum[0]) <= clip, `${Math.hypot(...sum[0])} exceeds ${clip}`)
        }),
        { numRuns: 300 }
      )
    })

    it('changes the length of a gradient only, and only if it is too large', () => {
      const features = fc.uniqueArray(fc.tuple(feature, moderate), { selector: ([index]) => index })
      const input = fc.record({ label, features, weight })
      fc.assert(
        fc.property(input, weights(moderate), limit, (row, parameters, clip) => {
          const [clipped, plain] = [clip, undefined].map(limit => {
            const sum = [new Float32Array(length)]
            const learner = createLearner({ model, dimension, classes, clip: limit })
            learner.addGradient(parameters, examplesOf([row]), 0, 1, sum)
            return sum[0]
          })
          const norm = Math.hypot(...plain)
          const factor = norm > clip ? clip / norm : 1
          for (const [i, element] of plain.entries()) {
            assert.ok(Math.abs(clipped[i] - factor * element) <= 1e-5 * clip, `element ${i}`)
          }
        }),
        { numRuns: 300 }
      )
    })
  })
}

describe('the penalty', () => {
  it('is not clipped, because it does not depend on the input', () => {
    const parameters = [Float32Array.of(100, -100)]
    const sum = [new Float32Array(2)]
    const learner = createLearner({ model: 'logistic', dimension: 2, l2: 0.5, clip: 0.1 })
    learner.addGradient(parameters, examplesOf([{ label: 0, features: [] }]), 0, 1, sum)
    assert.deepEqual([...sum[0]], [50, -50])
  })
})

import assert from 'node:assert/strict'
import fc from 'fast-check'
import { createLearner } from '../../../src/learning/models/linear.js'
import type { ModelName } from '../../../src/learning/models/model.js'
import { examplesOf, type Row } from '../../support/learning/rows.js'

const dimension = 6
const small = fc.double({ min: -3, max: 3, noNaN: true }).map(Math.fround)

function rowOf(model: ModelName): fc.Arbitrary<Row> {
  const label = model === 'linear' ? small : fc.nat({ max: model === 'softmax' ? 2 : 1 })
  return fc.record({ label, features: fc.array(fc.tuple(fc.nat({ max: dimension - 1 }), small), { maxLength: 8 }) })
}

/** Rows, parameters, a second point and a mixing weight, for a model with the given number of outputs. */
function caseOf(model: ModelName) {
  const length = dimension * (model === 'softmax' ? 3 : 1)
  const weights = fc.array(small, { minLength: length, maxLength: length }).map(w => Float32Array.from(w))
  return fc.tuple(fc.array(rowOf(model), { minLength: 1, maxLength: 4 }), weights, weights)
}

for (const model of ['logistic', 'softmax', 'linear', 'hinge'] as const) {
  describe(`model ${model}`, () => {
    const classes = model === 'softmax' ? 3 : undefined
    for (const l2 of [0, 0.25]) {
      const learner = createLearner({ model, dimension, classes, l2 })
      const objective = (rows: readonly Row[], weights: Float32Array): number => {
        const into = { loss: 0, hits: 0 }
        learner.score([weights], examplesOf(rows), 0, rows.length, into)
        return into.loss + (l2 / 2) * rows.length * weights.reduce((sum, w) => sum + w * w, 0)
      }

      it(`has the gradient of finite differences, l2 = ${l2}`, () => {
        fc.assert(
          fc.property(caseOf(model), ([rows, weights]) => {
            const derivative = (at: Float32Array, i: number): number => {
              const [sum] = learner.initial()
              learner.addGradient([at], examplesOf(rows), 0, rows.length, [sum])
              return sum[i]
            }
            for (let i = 0; i < weights.length; i++) {
              const [above, below] = [Float32Array.from(weights), Float32Array.from(weights)]
              above[i] += 1 / 256
              below[i] -= 1 / 256
              const slope = (objective(rows, above) - objective(rows, below)) / (above[i] - below[i])
              // A convex objective's mean slope is between the derivatives at both ends, also at the kinks of the hinge.
              const [least, most] = [derivative(below, i), derivative(above, i)]
              const rounding = 1e-3 * (1 + Math.abs(slope))
              assert.ok(
                slope > least - rounding && slope < most + rounding,
                `${slope}, not ${least} to ${most}, at ${i}`
              )
            }
          }),
          { numRuns: 100 }
        )
      })

      it(`is convex (above its tangent), l2 = ${l2}`, () => {
        fc.assert(
          fc.property(caseOf(model), ([rows, here, there]) => {
            const [sum] = learner.initial()
            learner.addGradient([here], examplesOf(rows), 0, rows.length, [sum])
            const tangent = sum.reduce((total, g, i) => total + g * (there[i] - here[i]), objective(rows, here))
            assert.ok(objective(rows, there) >= tangent - 1e-3 * (1 + Math.abs(tangent)))
          }),
          { numRuns: 100 }
        )
      })
    }

    it('predicts probabilities that sum to one, and the class that scoring counts as a hit', () => {
      const learner = createLearner({ model, dimension, classes })
      fc.assert(
        fc.property(caseOf(model), ([rows, weights]) => {
          const [{ label, scores }] = learner.predict([weights], examplesOf(rows), 0, 1)
          if (model === 'linear') return assert.deepEqual(scores, [label])
          assert.ok(Math.abs(scores.reduce((a, b) => a + b) - 1) < 1e-12)
          assert.ok(scores.every(p => p >= 0 && p <= scores[label] + 1e-12))
          const into = { loss: 0, hits: 0 }
          learner.score([weights], examplesOf([{ ...rows[0], label }]), 0, 1, into)
          assert.equal(into.hits, 1)
        }),
        { numRuns: 100 }
      )
    })
  })
}

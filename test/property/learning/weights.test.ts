/** Weights of inputs and of classes: gradients and losses are those of repeated inputs. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import {
  averagingFor,
  BatchEngine,
  createAveraging,
  createLearner,
  createRule,
  type ModelName,
  ProgressiveMetrics,
  ruleFor,
  type Score,
  SerialTrainer
} from '../../../src/learning/index.js'
import { examplesOf, type Row } from '../../support/learning/rows.js'

const dimension = 5
/** Squares of float32 numbers that are not too small for float32. */
const small = fc.double({ min: -2, max: 2, noNaN: true }).map(x => (Math.abs(x) < 1e-15 ? 0 : Math.fround(x)))

function rowOf(model: ModelName): fc.Arbitrary<Row & { readonly weight: number }> {
  return fc.record({
    label: model === 'linear' ? small : fc.nat({ max: model === 'softmax' ? 2 : 1 }),
    features: fc.array(fc.tuple(fc.nat({ max: dimension - 1 }), small), { maxLength: 6 }),
    weight: fc.nat({ max: 3 })
  })
}

const near = (actual: number, expected: number, what: string) =>
  assert.ok(Math.abs(actual - expected) <= 1e-3 * (1 + Math.abs(expected)), `${what}: ${actual}, not ${expected}`)

for (const model of ['logistic', 'softmax', 'linear', 'hinge'] as const) {
  const classes = model === 'softmax' ? 3 : undefined
  const rows = fc.array(rowOf(model), { minLength: 1, maxLength: 12 })

  describe(`weights of inputs, model ${model}`, () => {
    it('make gradients, losses and figures those of repeated inputs', () => {
      const learner = createLearner({ model, dimension, classes })
      fc.assert(
        fc.property(rows, fc.array(small, { minLength: 15, maxLength: 15 }), (weighted, numbers) => {
          const repeated = weighted.flatMap(({ label, features, weight }) =>
            Array.from({ length: weight }, () => ({ label, features }))
          )
          const parameters = [Float32Array.from(numbers.slice(0, dimension * (classes ?? 1)))]
          const measured = [weighted, repeated].map(all => {
            const [sum] = learner.initial()
            learner.addGradient(parameters, examplesOf(all), 0, all.length, [sum])
            const outcomes = learner.outcomeKind && new ProgressiveMetrics(learner.outcomeKind)
            const score: Score = { loss: 0, hits: 0, outcomes }
            learner.score(parameters, examplesOf(all), 0, all.length, score)
            return { sum, score, metrics: outcomes?.metrics(score.loss) }
          })
          const [one, many] = measured
          for (const [i, value] of many.sum.entries()) near(one.sum[i], value, `gradient ${i}`)
          near(one.score.loss, many.score.loss, 'loss')
          assert.equal(one.score.hits, many.score.hits)
          assert.equal(weighted.length + (one.score.surplus ?? 0), repeated.length)
          const figures = [one, many].map(({ metrics }) => [metrics?.total, metrics?.recent[0]])
          for (const i of [0, 1]) {
            for (const [name, value] of Object.entries(figures[1][i] ?? {})) {
              if (name === 'inputs' || typeof value !== 'number') continue
              near(figures[0][i]?.[name as 'loss'] ?? Number.NaN, value, name)
            }
            assert.deepEqual(figures[0][i]?.confusion, figures[1][i]?.confusion)
          }
        }),
        { numRuns: 100 }
      )
    })

    it('train the same in the fused loop and in the general engine', () => {
      const classWeights = model === 'linear' ? undefined : [0.5, 2, 3].slice(0, classes ?? 2)
      fc.assert(
        fc.property(rows, fc.boolean(), (weighted, hasWeights) => {
          const all = hasWeights ? weighted : weighted.map(({ label, features }) => ({ label, features }))
          const engine = new BatchEngine({
            learnerFor: features => createLearner({ model, classes, classWeights, dimension: features }),
            dimension,
            dimensionLimit: dimension,
            rule: createRule(ruleFor(model)),
            averaging: createAveraging(averagingFor(model)),
            batch: 1,
            predictWith: 'average'
          })
          engine.learn(examplesOf(all))
          const trainer = new SerialTrainer({ model, classes, classWeights, dimension })
          trainer.learn(examplesOf(all))
          const expected = engine.finish()
          const { parameters, average } = trainer.finish()
          for (const [i, value] of expected.parameters[0].entries()) near(parameters[0][i], value, `weight ${i}`)
          for (const [i, value] of expected.average[0].entries()) near(average[0][i], value, `average ${i}`)
          const { weight, averageLoss } = trainer.report()
          assert.equal(weight, all.length + engine.progress.surplus)
          if (weight > 0) near(averageLoss ?? Number.NaN, engine.progress.loss / weight, 'loss')
        }),
        { numRuns: 100 }
      )
    })
  })
}

describe('weights of classes', () => {
  it('multiply gradients, and leave losses unchanged', () => {
    const rows: readonly Row[] = [
      { label: 0, features: [[0, 1]] },
      { label: 1, features: [[1, 1]] }
    ]
    const gradients = [undefined, [1, 5]].map(classWeights => {
      const learner = createLearner({ model: 'logistic', dimension: 2, classWeights })
      const [sum] = learner.initial()
      learner.addGradient(learner.initial(), examplesOf(rows), 0, 2, [sum])
      const score = { loss: 0, hits: 0 }
      learner.score(learner.initial(), examplesOf(rows), 0, 2, score)
      near(score.loss, 2 * Math.log(2), 'loss')
      return [...sum]
    })
    assert.deepEqual(gradients, [
      [0.5, -0.5],
      [0.5, -2.5]
    ])
  })

  it('are refused unless there is a number above 0 for each class', () => {
    for (const classWeights of [[1], [1, 2, 3], [1, 0], [1, -1], [1, Number.NaN]]) {
      assert.throws(() => createLearner({ model: 'logistic', dimension: 1, classWeights }), /for each of 2 classes/)
      assert.throws(() => new SerialTrainer({ model: 'logistic', classWeights }), /for each of 2 classes/)
    }
    assert.throws(() => createLearner({ model: 'linear', dimension: 1, classWeights: [1] }), /for classifiers/)
  })
})

import assert from 'node:assert/strict'
import { createLearner } from '../../../src/learning/models/linear.js'
import type { ModelName } from '../../../src/learning/models/model.js'
import { ExampleError, OptionError } from '../../../src/learning/options.js'
import { examplesOf } from '../../support/learning/rows.js'

const one = (label: number, index = 0, value = 1) => examplesOf([{ label, features: [[index, value]] }])

function lossAt(model: ModelName, weights: readonly number[], label: number, classes?: number): number {
  const learner = createLearner({ model, dimension: 1, classes })
  const into = { loss: 0, hits: 0 }
  learner.score([Float32Array.from(weights)], one(label), 0, 1, into)
  return into.loss
}

describe('linear learners', () => {
  it('compute the closed forms of their losses', () => {
    assert.ok(Math.abs(lossAt('logistic', [2], 1) - Math.log(1 + Math.exp(-2))) < 1e-15)
    assert.ok(Math.abs(lossAt('logistic', [2], 0) - Math.log(1 + Math.exp(2))) < 1e-15)
    assert.equal(lossAt('linear', [2], 5), 4.5)
    assert.deepEqual(
      [2, 0.5, -3].map(w => lossAt('hinge', [w], 1)),
      [0, 0.125, 3.5]
    )
    assert.ok(Math.abs(lossAt('softmax', [1, 2, 3], 1, 3) - Math.log(1 / Math.E + 1 + Math.E)) < 1e-14)
  })

  it('stay finite for scores of any size', () => {
    assert.equal(lossAt('logistic', [1e30], 1), 0)
    assert.equal(lossAt('logistic', [1e30], 0), Math.fround(1e30))
    assert.equal(lossAt('softmax', [1e30, -1e30], 0, 2), 0)
    assert.equal(lossAt('softmax', [0, 1e30], 0, 2), Math.fround(1e30))
  })

  it('store the weights of a feature adjacently', () => {
    const learner = createLearner({ model: 'softmax', dimension: 4, classes: 3 })
    const [sum] = learner.initial()
    learner.addGradient(learner.initial(), one(2, 1, 3), 0, 1, [sum])
    assert.deepEqual([...sum], [0, 0, 0, 1, 1, -2, 0, 0, 0, 0, 0, 0])
  })

  it('predict the probability for which a hinge score is optimal', () => {
    const learner = createLearner({ model: 'hinge', dimension: 1 })
    const [{ scores }] = learner.predict([Float32Array.of(0.5)], one(1), 0, 1)
    assert.ok(Math.abs(scores[1] - 2 / 3) < 1e-15)
  })

  it('process only the given rows, and add to the existing sums', () => {
    const learner = createLearner({ model: 'linear', dimension: 1 })
    const examples = examplesOf([9, 1, 9].map(label => ({ label, features: [[0, 1]] })))
    const sum = Float32Array.of(10)
    const into = { loss: 10, hits: 0 }
    learner.addGradient([Float32Array.of(3)], examples, 1, 2, [sum])
    learner.score([Float32Array.of(3)], examples, 1, 2, into)
    assert.deepEqual([sum[0], into.loss, into.hits], [12, 12, 0])
  })

  it('do not modify their arguments', () => {
    const learner = createLearner({ model: 'logistic', dimension: 2, l2: 0.5 })
    const weights = Float32Array.of(1, -1)
    learner.addGradient([weights], one(1, 1, 2), 0, 1, learner.initial())
    assert.deepEqual([...weights], [1, -1])
  })

  it('reject labels and features that do not fit, before adding anything', () => {
    const sum = new Float32Array(2)
    const learner = createLearner({ model: 'logistic', dimension: 2 })
    for (const examples of [one(2), one(0.5), one(-1), one(Number.NaN), one(1, 2), one(1, -1)]) {
      assert.throws(() => learner.addGradient(learner.initial(), examples, 0, 1, [sum]), ExampleError)
      assert.throws(() => learner.score(learner.initial(), examples, 0, 1, { loss: 0, hits: 0 }), ExampleError)
    }
    assert.throws(
      () => learner.score(learner.initial(), one(1, 7), 0, 1, { loss: 0, hits: 0 }),
      /feature 7 .*--dimension/
    )
    assert.throws(() => learner.addGradient(learner.initial(), one(1, 0, Number.NaN), 0, 1, [sum]), ExampleError)
    assert.throws(() => learner.addGradient(learner.initial(), one(1, 0, 1e30), 0, 1, [sum]), ExampleError)
    assert.deepEqual([...sum], [0, 0])
  })

  it('reject options that do not go together', () => {
    const bad = [
      { model: 'softmax', dimension: 2 },
      { model: 'softmax', dimension: 2, classes: 1 },
      { model: 'logistic', dimension: 2, classes: 3 },
      { model: 'linear', dimension: 2, classes: 2 },
      { model: 'hinge', dimension: 0 },
      { model: 'hinge', dimension: 2, l2: -1 },
      { model: 'tree' as ModelName, dimension: 2 }
    ] as const
    for (const options of bad) assert.throws(() => createLearner(options), OptionError, JSON.stringify(options))
  })
})

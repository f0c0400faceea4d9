import assert from 'node:assert/strict'
import { BatchEngine, type PredictWith, type Trained } from '../../../src/learning/engines/batch-engine.js'
import { type SerialOptions, SerialTrainer } from '../../../src/learning/engines/serial.js'
import { createLearner } from '../../../src/learning/models/linear.js'
import type { ModelName } from '../../../src/learning/models/model.js'
import { ExampleError, OptionError } from '../../../src/learning/options.js'
import { type AveragingSpec, averagingFor, createAveraging } from '../../../src/learning/rules/averaging.js'
import { createRule, ruleFor } from '../../../src/learning/rules/index.js'
import type { Blocks } from '../../../src/learning/types.js'
import { examplesOf, type Row, randomRows } from '../../support/learning/rows.js'

function train(options: SerialOptions, rows: readonly Row[], chunk = 64) {
  const trainer = new SerialTrainer(options)
  for (let from = 0; from < rows.length; from += chunk) trainer.learn(examplesOf(rows.slice(from, from + chunk)))
  return { report: trainer.report(), trained: trainer.finish() }
}

function assertClose(actual: Blocks, expected: Blocks, what: string): void {
  assert.equal(actual.length, expected.length)
  actual.forEach((block, k) => {
    assert.equal(block.length, expected[k].length, what)
    block.forEach((value, i) => {
      const reference = expected[k][i]
      assert.ok(
        Math.abs(value - reference) <= 2e-4 * (1 + Math.abs(reference)),
        `${what}[${i}]: ${value} against ${reference}`
      )
    })
  })
}

function assertAgree(fast: Trained, plain: Trained): void {
  assert.equal(fast.updates, plain.updates)
  assert.equal(fast.dimension, plain.dimension)
  assertClose(fast.parameters, plain.parameters, 'parameters')
  assertClose(fast.average, plain.average, 'average')
  assertClose(fast.state, plain.state, 'state')
}

const models: readonly [ModelName, number][] = [
  ['logistic', 2],
  ['hinge', 2],
  ['linear', 0],
  ['softmax', 4]
]
const averages: readonly AveragingSpec[] = [
  { name: 'uniform' },
  { name: 'exponential', halfLife: 0.5 },
  { name: 'tail' },
  { name: 'none' }
]

describe('SerialTrainer', () => {
  for (const [model, classes] of models) {
    for (const averaging of averages) {
      for (const disorder of [false, true]) {
        const order = disorder ? 'in any order and repeated' : 'ascending'
        it(`trains ${model} with average ${averaging.name} the same with both engines, features ${order}`, () => {
          const rows = randomRows({ count: 700, dimension: 40, features: 6, classes, seed: 5, disorder })
          for (const predictWith of ['average', 'current'] as const satisfies PredictWith[]) {
            for (const dimension of [undefined, 50]) {
              const shape = { model, classes: model === 'softmax' ? classes : undefined }
              const engine = new BatchEngine({
                learnerFor: features => createLearner({ ...shape, dimension: features }),
                dimension,
                dimensionLimit: 1000,
                rule: createRule(ruleFor(model)),
                averaging: createAveraging(averagingFor(model, averaging)),
                batch: 1,
                predictWith
              })
              engine.learn(examplesOf(rows))
              const { report, trained } = train({ ...shape, averaging, predictWith, dimension }, rows)
              assertAgree(trained, engine.finish())
              assert.equal(trained.dimension, dimension ?? 40)
              const expected = engine.progress.loss / engine.progress.inputs
              assert.ok(Math.abs((report.averageLoss ?? 0) - expected) <= 1e-4 * expected)
              if (model !== 'linear') assert.ok(Math.abs((report.accuracy ?? 0) - engine.progress.hits / 700) < 0.003)
            }
          }
        })
      }
    }
  }

  it('updates with the gradients of one batch at the previous parameters', () => {
    const rows = randomRows({ count: 70, dimension: 9, features: 3, classes: 2, seed: 8 })
    const { trained } = train(
      { model: 'logistic', dimension: 9, batch: 32, l2: 0.1, rule: { name: 'momentum' } },
      rows,
      7
    )
    const learner = createLearner({ model: 'logistic', dimension: 9, l2: 0.1 })
    const rule = createRule({ name: 'momentum' })
    let now = { parameters: learner.initial() as Blocks, state: learner.initial() as Blocks }
    for (const [updates, [from, to]] of [
      [0, 32],
      [32, 64],
      [64, 70]
    ].entries()) {
      const sum = learner.initial()
      learner.addGradient(now.parameters, examplesOf(rows), from, to, sum)
      now = rule.step(now, sum, to - from, updates)
    }
    assertClose(trained.parameters, now.parameters, 'parameters')
    assert.equal(trained.updates, 3)
  })

  it('learns: the progressive loss falls far below the initial one', () => {
    const rows = randomRows({ count: 4000, dimension: 30, features: 5, classes: 3, seed: 2 })
    for (const batch of [1, 32]) {
      const { report } = train({ model: 'softmax', classes: 3, batch }, rows)
      assert.ok((report.averageLoss ?? 9) < 0.6 * Math.log(3), `${report.averageLoss}`)
      assert.ok((report.accuracy ?? 0) > 0.8)
    }
  })

  it('scores each input before learning from it', () => {
    const rows: Row[] = [
      { label: 1, features: [[0, 1]] },
      { label: 1, features: [[0, 1]] }
    ]
    const trainer = new SerialTrainer({ model: 'logistic', predictWith: 'current' })
    trainer.learn(examplesOf(rows.slice(0, 1)))
    assert.ok(Math.abs((trainer.report().averageLoss ?? 0) - Math.LN2) < 1e-12)
    assert.equal(trainer.report().accuracy, 0)
    trainer.learn(examplesOf(rows.slice(1)))
    assert.equal(trainer.report().accuracy, 0.5)
  })

  it('grows with the data in both engines, to the features seen', () => {
    const rows: Row[] = [3, 5000, 2, 70000].map(index => ({ label: 1, features: [[index, 1]] }))
    for (const batch of [1, 2]) {
      const { trained } = train({ model: 'logistic', batch }, rows, 2)
      assert.equal(trained.dimension, 70001)
      assert.deepEqual(
        [...trained.parameters, ...trained.average, ...trained.state].map(block => block.length),
        [70001, 70001, 70001, 4]
      )
      for (const index of [2, 3, 5000, 70000]) assert.ok(trained.parameters[0][index] > 0)
    }
  })

  it('skips and counts unlabelled rows', () => {
    const rows = randomRows({ count: 50, dimension: 9, features: 3, classes: 2, seed: 8 })
    const mixed = rows.flatMap(row => [{ ...row, label: Number.NaN }, row])
    for (const batch of [1, 4]) {
      const { report, trained } = train({ model: 'logistic', batch, dimension: 9 }, mixed)
      assert.deepEqual([report.inputs, report.unlabelled], [50, 50])
      assertAgree(trained, train({ model: 'logistic', batch, dimension: 9 }, rows).trained)
    }
    assert.equal(new SerialTrainer({ model: 'logistic' }).report().averageLoss, undefined)
  })

  it('rejects labels, features and growth that do not fit', () => {
    for (const batch of [1, 2]) {
      const one = (options: SerialOptions, label: number, index: number, value = 1) =>
        new SerialTrainer({ batch, ...options }).learn(examplesOf([{ label, features: [[index, value]] }]))
      assert.throws(() => one({ model: 'logistic' }, 2, 0), ExampleError)
      assert.throws(() => one({ model: 'softmax', classes: 3 }, 3, 0), ExampleError)
      assert.throws(() => one({ model: 'logistic', dimension: 4 }, 1, 4), /feature 4 is beyond the model's last, 3/)
      assert.throws(() => one({ model: 'logistic', parameterLimit: 100 }, 1, 100), ExampleError)
      assert.throws(() => one({ model: 'logistic' }, 1, -1), ExampleError)
      assert.throws(() => one({ model: 'linear' }, 1, 0, Number.NaN), ExampleError)
      assert.throws(() => one({ model: 'linear' }, Infinity, 0), ExampleError)
    }
  })

  it('rejects invalid options', () => {
    const bad: SerialOptions[] = [
      { model: 'logistic', batch: 0 },
      { model: 'logistic', batch: 1.5 },
      { model: 'logistic', dimension: -1 },
      { model: 'softmax' },
      { model: 'logistic', predictWith: 'best' as PredictWith }
    ]
    for (const options of bad) assert.throws(() => new SerialTrainer(options), OptionError)
  })
})

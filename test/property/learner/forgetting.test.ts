/** AdaGrad that forgets: the same in all engines, and better than AdaGrad without it on a stream that changes. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import {
  averagingFor,
  BatchEngine,
  createAveraging,
  createLearner,
  type ModelName,
  SerialTrainer
} from '../../../src/learner/index.js'
import { createRule } from '../../../src/learner/rules/index.js'
import { examplesOf, type Row, randomFrom, randomRows } from '../../support/learner/rows.js'

const forget = fc.double({ min: 1e-4, max: 0.5, noNaN: true })

function trained(model: ModelName, rows: readonly Row[], share: number, isGeneral = false) {
  const classes = model === 'softmax' ? 3 : undefined
  const rule = { name: 'adagrad', forget: share } as const
  const trainer = new SerialTrainer(
    isGeneral
      ? {
          classifies: true,
          engine: new BatchEngine({
            learnerFor: dimension => createLearner({ model, classes, dimension }),
            dimension: undefined,
            dimensionLimit: 1000,
            rule: createRule(rule),
            averaging: createAveraging(averagingFor(model)),
            batch: 1,
            predictWith: 'average'
          })
        }
      : { model, classes, rule }
  )
  trainer.learn(examplesOf(rows))
  return { loss: trainer.report().averageLoss ?? Number.NaN, result: trainer.finish() }
}

/** Separable rows whose boundary turns. */
function turning(seed: number, count: number): Row[] {
  const random = randomFrom(seed)
  return Array.from({ length: count }, (_, row) => {
    const features = Array.from({ length: 6 }, (_, k) => [k, 2 * random() - 1] as const)
    const angle = (8 * Math.PI * row) / count
    const score = Math.cos(angle) * features[0][1] + Math.sin(angle) * features[1][1]
    return { label: Number(score > 0), features }
  })
}

describe('AdaGrad that forgets', () => {
  it('has the same results in the fused loops and in the general engine', () => {
    const models = fc.constantFrom<ModelName>('logistic', 'hinge', 'linear', 'softmax')
    fc.assert(
      fc.property(models, forget, fc.nat(), fc.boolean(), (model, share, seed, disorder) => {
        const classes = { logistic: 2, hinge: 2, linear: 0, softmax: 3 }[model]
        const rows = randomRows({ count: 150, dimension: 12, features: 5, classes, seed, disorder })
        const fused = trained(model, rows, share)
        const general = trained(model, rows, share, true)
        assert.ok(Math.abs(fused.loss / general.loss - 1) < 1e-3, `${fused.loss} and ${general.loss}`)
        for (const [i, square] of fused.result.state[0].entries()) {
          const other = general.result.state[0][i]
          assert.ok(Math.abs(square - other) <= 1e-3 * (1 + other), `${square} and ${other}`)
        }
      }),
      { numRuns: 40 }
    )
  })

  it('forgets n times as much for a batch of n', () => {
    fc.assert(
      fc.property(forget, fc.integer({ min: 1, max: 300 }), (share, count) => {
        const rule = createRule({ name: 'adagrad', forget: share })
        const previous = { parameters: [Float32Array.of(0, 0)], state: [Float32Array.of(8, 8)] }
        const { state } = rule.step(previous, [Float32Array.of(3 * Math.sqrt(count), 0)], count, 5)
        const expected = 8 * (1 - share) ** count + 9
        assert.ok(Math.abs(state[0][0] - expected) < 1e-4 * expected)
        assert.equal(state[0][1], 8)
      })
    )
  })

  it('follows a stream that changes', () => {
    fc.assert(
      fc.property(fc.nat(), seed => {
        const rows = turning(seed, 8000)
        const current = (rule: object) => {
          const trainer = new SerialTrainer({
            model: 'logistic',
            rule: { name: 'adagrad', ...rule },
            predictWith: 'current'
          })
          trainer.learn(examplesOf(rows))
          return trainer.metrics()?.total.accuracy ?? 0
        }
        assert.ok(current({ forget: 0.01 }) > current({}))
      }),
      { numRuns: 20 }
    )
  })
})

/** The outcomes of a network's rows are those of its predictions, under all schedules. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { openDevice } from '../../../src/device/index.js'
import { NetworkLearner } from '../../../src/l2l/network-learner.js'
import { ProgressiveMetrics } from '../../../src/learning/index.js'
import { createModel } from '../../../src/nn/create-model.js'
import { parseModel } from '../../../src/nn/spec/model-spec.js'
import type { Target } from '../../../src/nn/spec/network-spec.js'
import { examplesOf, randomRows } from '../../support/learning/rows.js'

const WIDTH = 5

describe('outcomes of a network', () => {
  before(() => openDevice('cpu'))

  for (const schedule of ['baseline-ag', 'l2l'] as const) {
    for (const target of [
      { kind: 'class', classes: 3 },
      { kind: 'number', scale: { mean: 2, deviation: 4 } }
    ] as Target[]) {
      it(`of the target ${target.kind}, ${schedule}`, () => {
        const model = createModel(
          parseModel({ model: 'mlp', hidden: [4] }, 'mlp'),
          { kind: 'features', shape: [WIDTH] },
          target
        )
        const learner = new NetworkLearner(model, { schedule, microbatch: 3 })
        const parameters = learner.initial()
        const classes = target.kind === 'class' ? target.classes : 0
        fc.assert(
          fc.property(fc.nat(1000), fc.integer({ min: 1, max: 40 }), (seed, count) => {
            const rows = examplesOf(randomRows({ count, dimension: WIDTH, features: 4, classes, seed }))
            const outcomes = new ProgressiveMetrics(learner.outcomeKind)
            const score = { loss: 0, hits: 0, outcomes }
            learner.score(parameters, rows, 0, count, score)
            const predictions = learner.predict(parameters, rows, 0, count)
            assert.equal(outcomes.inputs, count)
            const { total } = outcomes.metrics(score.loss)
            const labels = rows.labels.subarray(0, count)
            if (classes > 0) {
              const hits = predictions.filter(({ label }, row) => label === labels[row]).length
              assert.equal(score.hits, hits)
              assert.ok(Math.abs((total.accuracy ?? 0) - hits / count) < 1e-9)
              const [{ confusion = [] }] = [total]
              assert.equal(
                confusion.flat().reduce((sum, n) => sum + n, 0),
                count
              )
            } else {
              const errors = predictions.map(({ label }, row) => Math.abs(label - labels[row]))
              const mae = errors.reduce((sum, error) => sum + error, 0) / count
              assert.ok(Math.abs((total.mae ?? 0) - mae) < 1e-4 * Math.max(1, mae), `${total.mae}, ${mae}`)
            }
            const mean = outcomes.recent(1000).loss
            assert.ok(Math.abs(mean - score.loss / count) < 1e-4 * Math.max(1, mean), `${mean}, ${score.loss / count}`)
          }),
          { numRuns: 15 }
        )
      })
    }
  }
})

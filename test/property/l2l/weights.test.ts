/** Weights of rows and classes in networks. */
import { deepEqual, equal, ok } from 'node:assert/strict'
import fc from 'fast-check'
import { networkLearner, networkModel } from '../../../src/l2l/execution.js'
import { NetworkLearner } from '../../../src/l2l/network-learner.js'
import { L2LEngine } from '../../../src/l2l/training/engine.js'
import { type Examples, ProgressiveMetrics, type Score, zeros } from '../../../src/learning/index.js'
import { parseModel } from '../../../src/nn/spec/model-spec.js'
import type { NetworkSpec } from '../../../src/nn/spec/network-spec.js'
import { randomRows } from '../../support/l2l/dense-model.js'
import { BACKENDS, useBackend } from '../../support/l2l/layers.js'

const layers = parseModel({ model: 'mlp', hidden: [5] }, 'test')
const sample = { kind: 'features', shape: [4] } as const
const networks: Readonly<Record<string, NetworkSpec>> = {
  classes: { layers, sample, target: { kind: 'class', classes: 3 } },
  numbers: { layers, sample, target: { kind: 'number', scale: { mean: 1, deviation: 2 } } },
  tokens: {
    layers: parseModel({ model: 'gpt', width: 8, layers: 1, heads: 2 }, 'test'),
    sample: { kind: 'tokens', shape: [5], vocabulary: 7 },
    target: { kind: 'next-token' }
  }
}

/** Rows of the same values, each as often as `times` says. */
function repeated({ labels, offsets, indices, values }: Examples, times: readonly number[]): Examples {
  const rows = times.flatMap((count, row) => Array<number>(count).fill(row))
  const width = offsets[1]
  const of = (array: Float32Array | Int32Array) =>
    rows.flatMap(row => [...array.subarray(row * width, (row + 1) * width)])
  return {
    size: rows.length,
    labels: Float32Array.from(rows, row => labels[row]),
    offsets: Int32Array.from({ length: rows.length + 1 }, (_, row) => row * width),
    indices: Int32Array.from(of(indices)),
    values: Float32Array.from(of(values))
  }
}

function close(actual: readonly Float32Array[], expected: readonly Float32Array[]): void {
  const largest = expected.flatMap(block => [...block]).reduce((most, v) => Math.max(most, Math.abs(v)), 1e-3)
  for (const [k, block] of expected.entries()) {
    for (const [i, v] of block.entries()) ok(Math.abs(v - actual[k][i]) <= 1e-4 * largest, `${actual[k][i]}, not ${v}`)
  }
}

function evaluate(learner: NetworkLearner, examples: Examples) {
  const parameters = learner.initial()
  const gradient = zeros(learner.layout)
  const outcomes = new ProgressiveMetrics(learner.outcomeKind)
  const score: Score = { loss: 0, hits: 0, outcomes }
  learner.score(parameters, examples, 0, examples.size, score)
  learner.addGradient(parameters, examples, 0, examples.size, gradient)
  const { loss, hits, surplus = 0 } = score
  return { loss, hits, weight: examples.size + surplus, gradient, figures: outcomes.metrics(loss).total }
}

for (const backend of BACKENDS) {
  describe(`weights in networks on ${backend}`, () => {
    before(() => useBackend(backend))

    for (const [name, network] of Object.entries(networks)) {
      it(`of rows count like repetitions: ${name}`, () => {
        const model = networkModel(network)
        const times = fc
          .array(fc.nat(3), { minLength: 1, maxLength: 6 })
          .filter(counts => counts.some(count => count > 0))
        const property = fc.property(times, fc.integer({ min: 1, max: 6 }), (counts, microbatch) => {
          const learner = new NetworkLearner(model, { microbatch })
          const examples = randomRows(model, counts.length)
          const weighted = evaluate(learner, { ...examples, weights: Float32Array.from(counts) })
          const expected = evaluate(learner, repeated(examples, counts))
          equal(weighted.weight, expected.weight)
          ok(Math.abs(weighted.loss - expected.loss) <= 1e-4 * expected.loss)
          ok(Math.abs(weighted.hits - expected.hits) <= 1e-4)
          ok(Math.abs(weighted.figures.loss - expected.figures.loss) <= 1e-4 * expected.figures.loss)
          close(weighted.gradient, expected.gradient)
        })
        fc.assert(property, { numRuns: 10 })
      })
    }
  })
}

describe('weights in networks', () => {
  before(() => useBackend('cpu'))
  const model = networkModel(networks.classes)
  const examples = randomRows(model, 12)

  it('of classes multiply gradients, and not losses', () => {
    const classWeights = [0.5, 2, 3]
    const weights = Float32Array.from(examples.labels, label => classWeights[label])
    const plain = evaluate(new NetworkLearner(model, {}), examples)
    const byRow = evaluate(new NetworkLearner(model, {}), { ...examples, weights })
    const byClass = evaluate(new NetworkLearner(model, { classWeights }), examples)
    deepEqual(byClass.gradient, byRow.gradient)
    deepEqual({ ...byClass, gradient: [] }, { ...plain, gradient: [] })
  })

  it('reach the threads of several devices', async () => {
    const weighted = { ...examples, weights: Float32Array.from({ length: 12 }, (_, row) => 1 + (row % 3)) }
    const alone = new NetworkLearner(model, { classWeights: [1, 2, 3] })
    const shared = await networkLearner(networks.classes, 12, { backend: 'cpu', microbatch: 2, workers: 2 }, [1, 2, 3])
    const expected = evaluate(alone, weighted)
    for (let time = 0; time < 3; time++) close(evaluate(shared, weighted).gradient, expected.gradient)
  })

  for (const predictWith of ['average', 'current'] as const) {
    it(`are in the figures of training (${predictWith})`, () => {
      const run = (rows: Examples) => {
        const engine = new L2LEngine({
          model,
          rule: { name: 'momentum' },
          averaging: { name: 'uniform' },
          batch: rows.size,
          predictWith
        })
        engine.learn(rows)
        engine.finish()
        const { inputs, surplus, loss, hits, outcomes } = engine.progress
        return { weight: inputs + surplus, loss, hits, mean: outcomes?.metrics(loss).total.loss }
      }
      const counts = Array.from({ length: 12 }, (_, row) => row % 4)
      const weighted = run({ ...examples, weights: Float32Array.from(counts) })
      const expected = run(repeated(examples, counts))
      equal(weighted.weight, expected.weight)
      ok(Math.abs(weighted.loss - expected.loss) < 1e-4 * expected.loss)
      ok(Math.abs(weighted.hits - expected.hits) < 1e-4)
      ok(Math.abs((weighted.mean ?? 0) - (expected.mean ?? 0)) < 1e-4)
    })
  }
})

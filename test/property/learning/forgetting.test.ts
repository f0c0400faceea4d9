/** AdaGrad that forgets: the same in all engines, and better than AdaGrad without it on a stream that changes. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { PredictWith } from '../../../src/learning/engines/batch-engine.js'
import {
  averagingFor,
  BatchEngine,
  createAveraging,
  createLearner,
  type ModelName,
  SerialTrainer
} from '../../../src/learning/index.js'
import type { AdagradOptions } from '../../../src/learning/rules/adagrad.js'
import { createRule, ruleFor } from '../../../src/learning/rules/index.js'
import type { Blocks } from '../../../src/learning/types.js'
import { examplesOf, type Row, randomFrom, randomRows } from '../../support/learning/rows.js'
import { share } from '../../support/runs.js'

const forget = fc.double({ min: 1e-4, max: 0.5, noNaN: true })

function trained(model: ModelName, rows: readonly Row[], options: AdagradOptions, isGeneral = false) {
  const classes = model === 'softmax' ? 3 : undefined
  const rule = { name: 'adagrad', ...options } as const
  const trainer = new SerialTrainer(
    isGeneral
      ? {
          classifies: true,
          engine: new BatchEngine({
            learnerFor: dimension => createLearner({ model, classes, dimension }),
            dimension: undefined,
            dimensionLimit: 1000,
            rule: createRule(ruleFor(model, rule)),
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

/** Rows in runs of one label, whatever their features. */
function alike(seed: number, count: number): Row[] {
  const random = randomFrom(seed)
  let label = 0
  return Array.from({ length: count }, () => {
    if (random() < 0.02) label = 1 - label
    return { label, features: [[0, 1] as const, ...[1, 2, 3].map(k => [k, 2 * random() - 1] as const)] }
  })
}

/** Accuracy since the start. @param predictWith @default the average */
function accuracy(
  rows: readonly Row[],
  options: AdagradOptions,
  batch = 1,
  predictWith: PredictWith = 'average'
): number {
  const trainer = new SerialTrainer({ model: 'logistic', rule: { name: 'adagrad', ...options }, batch, predictWith })
  trainer.learn(examplesOf(rows))
  return trainer.report().accuracy ?? 0
}

describe('AdaGrad that forgets', () => {
  it('has the same results in the fused loops and in the general engine', () => {
    const models = fc.constantFrom<ModelName>('logistic', 'hinge', 'linear', 'softmax')
    const options = fc.oneof(
      fc.record({ forget }),
      fc.record({ maxForget: forget }),
      fc.record({ forget, maxForget: forget })
    )
    fc.assert(
      fc.property(models, options, fc.nat(), fc.boolean(), fc.boolean(), (model, rule, seed, disorder, sorted) => {
        const classes = { logistic: 2, hinge: 2, linear: 0, softmax: 3 }[model]
        const rows = randomRows({ count: 150, dimension: 12, features: 5, classes, seed, disorder })
        // Successive gradients agree in sorted rows.
        if (sorted) rows.sort((a, b) => a.label - b.label)
        const fused = trained(model, rows, rule)
        const general = trained(model, rows, rule, true)
        assert.ok(Math.abs(fused.loss / general.loss - 1) < 1e-3, `${fused.loss} and ${general.loss}`)
        for (const kind of ['state', 'average'] as const) {
          for (const [k, block] of fused.result[kind].entries()) {
            for (const [i, value] of block.entries()) {
              const other = general.result[kind][k][i]
              assert.ok(Math.abs(value - other) <= 1e-3 * (1 + Math.abs(other)), `${kind}: ${value} and ${other}`)
            }
          }
        }
      }),
      { numRuns: share(80) }
    )
  })

  it('follows rows whose neighbours have the same label by itself, with the average too', () => {
    fc.assert(
      fc.property(fc.nat(), fc.constantFrom(1, 2), (seed, batch) => {
        const rows = alike(seed, 10_000 * batch)
        for (const predictWith of ['average', 'current'] as const) {
          const [adaptive, plain] = [{}, { maxForget: 0 }].map(rule => accuracy(rows, rule, batch, predictWith))
          assert.ok(adaptive > plain + 0.05, `${predictWith}: ${adaptive}, ${plain}`)
        }
      }),
      { numRuns: 10 }
    )
  })

  it('forgets nothing by itself where nothing changes', () => {
    fc.assert(
      fc.property(fc.nat(), fc.constantFrom(1, 8), (seed, batch) => {
        const rows = randomRows({ count: 6000, dimension: 40, features: 6, classes: 2, seed })
        const random = randomFrom(seed)
        const noisy = rows.map(row => (random() < 0.2 ? { ...row, label: 1 - row.label } : row))
        const [adaptive, plain] = [{}, { maxForget: 0 }].map(rule => accuracy(noisy, rule, batch))
        assert.ok(adaptive > plain - 0.01, `${adaptive}, ${plain}`)
      }),
      { numRuns: 10 }
    )
  })

  it('counts the batches that its accumulators contain, for the grid of integer sums', () => {
    fc.assert(
      fc.property(fc.nat(), fc.integer({ min: 2, max: 20 }), (seed, count) => {
        const random = randomFrom(seed)
        const rule = createRule({ name: 'adagrad', maxForget: 0.5, initial: 1e-9 })
        let now = {
          parameters: [new Float32Array(4)] as Blocks,
          state: [new Float32Array(4), new Float32Array(4)] as Blocks
        }
        // First of random signs, then of one: the accumulators forget more and more.
        for (let updates = 0; updates < 1000; updates++) {
          const sign = updates < 100 && random() < 0.5 ? -1 : 1
          now = rule.step(now, [Float32Array.of(3 * sign, 3 * sign, 3 * sign, 0)], count, updates)
          const { squares = [] } = rule.squares?.(now.state, 0, count, updates + 1) ?? {}
          // Each batch's sum has a square of 9.
          assert.ok(Math.abs(squares[0] / ((9 * now.state[1][3]) / (now.state[1][3] + 1)) - 1) < 1e-3)
        }
        assert.ok(now.state[1][3] < 10)
      }),
      { numRuns: share(20) }
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
        const [forgetting, plain] = [{ forget: 0.01 }, { maxForget: 0 }].map(rule => accuracy(rows, rule, 1, 'current'))
        assert.ok(forgetting > plain)
      }),
      { numRuns: share(20) }
    )
  })
})

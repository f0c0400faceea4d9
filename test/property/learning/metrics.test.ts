/** Progressive metrics against their definitions, computed directly from all outcomes. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { commitSums, OUTCOME_ROWS, type OutcomeKind, ProgressiveMetrics } from '../../../src/learning/metrics/index.js'
import { outcomesOf, scalarLosses } from '../../../src/learning/models/losses.js'

type Pair = readonly [label: number, score: number]

function measured(kind: OutcomeKind, rows: readonly (readonly number[])[]): ProgressiveMetrics {
  const metrics = new ProgressiveMetrics(kind)
  for (let row = 0; row < rows.length; row += OUTCOME_ROWS) {
    const group = rows.slice(row, row + OUTCOME_ROWS)
    metrics.entries.set(group.flat())
    metrics.commit(group.length)
  }
  return metrics
}

function near(actual: number | undefined, expected: number, tolerance = 1e-9): void {
  assert.ok(
    Math.abs((actual ?? Number.NaN) - expected) <= tolerance * Math.max(1, Math.abs(expected)),
    `${actual} ≠ ${expected}`
  )
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length

/** Share of the pairs of different classes that are in the right order; equal scores count as half. */
function areaUnderCurve(rows: readonly Pair[]): number {
  const scores = (label: number) => rows.filter(row => row[0] === label).map(([, score]) => score)
  return mean(scores(1).flatMap(yes => scores(0).map(no => (yes > no ? 1 : yes === no ? 0.5 : 0))))
}

// Scores on the histogram's grid, so that no two different ones share a bin.
const scores = fc.integer({ min: -1000, max: 1000 }).map(bin => bin / 128)
const outcomes = fc.array(fc.tuple(fc.constantFrom(0, 1), scores), { minLength: 1, maxLength: 60 })
const { logistic, linear } = scalarLosses

describe('progressive metrics', () => {
  it('of two classes are those of the definitions', () => {
    fc.assert(
      fc.property(outcomes, rows => {
        const loss = mean(rows.map(([label, score]) => logistic.value(score, label)))
        const { total, recent } = measured(outcomesOf(logistic), rows).metrics(loss * rows.length)
        const hit = ([label, score]: Pair) => Number(score > 0 === label > 0)
        const recalls = [0, 1].map(c => rows.filter(([label]) => label === c)).filter(({ length }) => length > 0)
        near(total.accuracy, mean(rows.map(hit)))
        near(total.balancedAccuracy, mean(recalls.map(group => mean(group.map(hit)))))
        near(total.logLoss, loss)
        if (recalls.length === 2) near(total.auc, areaUnderCurve(rows))
        else assert.equal(total.auc, undefined)
        const counts = [0, 1].map(c =>
          [0, 1].map(p => rows.filter(([label, score]) => label === c && Number(score > 0) === p).length)
        )
        assert.deepEqual(total.confusion, counts)
        const { window, ...figures } = recent[0]
        assert.equal(window, 1000)
        near(figures.loss, loss)
        assert.deepEqual({ ...figures, loss, logLoss: loss }, { ...total, loss, logLoss: loss })
      })
    )
  })

  it('of numbers are those of the definitions', () => {
    const numbers = fc.double({ min: -1e4, max: 1e4, noNaN: true })
    fc.assert(
      fc.property(fc.array(fc.tuple(numbers, numbers), { minLength: 2, maxLength: 60 }), rows => {
        const labels = rows.map(([label]) => label)
        const spread = mean(labels.map(label => (label - mean(labels)) ** 2))
        fc.pre(spread > 1e-3)
        const { total } = measured(outcomesOf(linear), rows).metrics(0)
        const squares = mean(rows.map(([label, score]) => (label - score) ** 2))
        near(total.rmse, Math.sqrt(squares))
        near(total.mae, mean(rows.map(([label, score]) => Math.abs(label - score))))
        near(total.r2, 1 - squares / spread, 1e-6)
      })
    )
  })

  it('of more classes count every class and the calibration of its predictions', () => {
    const row = fc.tuple(fc.nat(2), fc.nat(2), fc.double({ min: 0.01, max: 1, noNaN: true }))
    fc.assert(
      fc.property(fc.array(row, { minLength: 1, maxLength: 60 }), rows => {
        const entries = rows.map(([label, predicted, p]) => [label, predicted, p, 0.5])
        const { total } = measured({ kind: 'classes', classes: 3 }, entries).metrics(rows.length / 2)
        const bins = Array.from({ length: 10 }, (_, bin) => rows.filter(([, , p]) => Math.ceil(10 * p) - 1 === bin))
        const differences = bins.map(bin =>
          Math.abs(bin.reduce((sum, [label, predicted, p]) => sum + Number(label === predicted) - p, 0))
        )
        near(total.calibrationError, differences.reduce((a, b) => a + b, 0) / rows.length)
        assert.equal(
          total.confusion?.flat().reduce((a, b) => a + b),
          rows.length
        )
        assert.equal(total.logLoss, 0.5)
      })
    )
  })

  it('of a window are those of its inputs alone, also after the ring has wrapped', () => {
    const errors = (rows: readonly Pair[]) => Math.sqrt(mean(rows.map(([label, score]) => (label - score) ** 2)))
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 25_000 }), inputs => {
        const rows = Array.from({ length: inputs }, (_, i): Pair => [i % 7, Math.sqrt(i)])
        const { recent, total } = measured(outcomesOf(linear), rows).metrics(0)
        assert.equal(total.inputs, inputs)
        for (const { window, inputs: counted, rmse, loss } of recent) {
          const last = rows.slice(-window)
          assert.equal(counted, last.length)
          near(rmse, errors(last))
          near(loss, errors(last) ** 2 / 2)
        }
      }),
      { numRuns: 20 }
    )
  })

  it('follow from the sums of minibatches if nothing else is known', () => {
    const metrics = new ProgressiveMetrics({ kind: 'sums', predicts: 'token' })
    commitSums(metrics, 40, 40 * Math.log(8), 10)
    const { total, recent } = metrics.metrics(40 * Math.log(8))
    near(total.perplexity, 8)
    near(total.accuracy, 0.25)
    near(recent[0].perplexity, 8)
    assert.equal(recent[0].inputs, 40)
    assert.equal(metrics.last, undefined)
  })
})

import assert from 'node:assert/strict'
import { metrics } from '../../../scripts/bench/glue/metrics.js'

describe('the metrics of GLUE', () => {
  const classes = ['0', '1']
  // 3 true positives, 2 true negatives, 1 missed, 2 wrong.
  const labels = ['1', '1', '1', '1', '0', '0', '0', '0']
  const predicted = ['1', '1', '1', '0', '0', '0', '1', '1']

  it('of two classes', () => {
    assert.equal(metrics.accuracy.of(labels, predicted), 5 / 8)
    assert.equal(metrics.f1.of(labels, predicted, classes), 6 / 9)
    assert.ok(Math.abs(metrics.matthews.of(labels, predicted, classes) - 4 / Math.sqrt(5 * 4 * 3 * 4)) < 1e-12)
  })

  it('are 0 where one class is predicted', () => {
    const zeros = labels.map(() => '0')
    assert.equal(metrics.f1.of(labels, zeros, classes), 0)
    assert.equal(metrics.matthews.of(labels, zeros, classes), 0)
  })

  it('of numbers; equal ones share a rank', () => {
    const truth = ['1', '2', '3', '4']
    assert.ok(Math.abs(metrics.pearson.of(truth, ['2', '4', '6', '8']) - 1) < 1e-12)
    assert.ok(Math.abs(metrics.spearman.of(truth, ['1', '10', '100', '1000']) - 1) < 1e-12)
    // Ranks 0.5, 0.5, 2, 3 against 0, 1, 2, 3: covariance 4.5, squares 4.5 and 5.
    assert.ok(Math.abs(metrics.spearman.of(truth, ['1', '1', '2', '3']) - 4.5 / Math.sqrt(4.5 * 5)) < 1e-12)
    assert.equal(metrics.pearson.of(truth, ['1', '1', '1', '1']), 0)
  })
})

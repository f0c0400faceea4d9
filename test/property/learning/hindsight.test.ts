/** The optimum in hindsight, compared with closed forms and finite differences, and its absence for separable data. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { createLearner, type Examples, type HindsightOptimum, hindsightOptimum } from '../../../src/learning/index.js'

type Row = readonly [label: number, ...features: number[]]

function examplesOf(rows: readonly Row[]): Examples {
  const cells = rows.flatMap(([, ...features]) => features.map((value, index) => ({ index, value })))
  const offsets = [0]
  for (const row of rows) offsets.push(offsets[offsets.length - 1] + row.length - 1)
  return {
    size: rows.length,
    labels: Float32Array.from(rows, ([label]) => label),
    offsets: Int32Array.from(offsets),
    indices: Int32Array.from(cells, ({ index }) => index),
    values: Float32Array.from(cells, ({ value }) => value)
  }
}

/** Rows with a constant feature and labels from `label`. All numbers are exact in float32. */
const rowsOf = (label: fc.Arbitrary<number>, least: number) =>
  fc.array(
    fc
      .tuple(label, fc.integer({ min: -8, max: 8 }), fc.integer({ min: -8, max: 8 }))
      .map(([y, a, b]): Row => [y, 1, a / 4, b / 4]),
    { minLength: least, maxLength: 40 }
  )

/** An independent implementation of the log loss. */
function softmaxLoss(rows: readonly Row[], weights: ArrayLike<number>, classes: number): number {
  let sum = 0
  for (const [label, ...features] of rows) {
    const scores = Array.from({ length: classes }, (_, c) =>
      features.reduce((score, x, i) => score + x * weights[i * classes + c], 0)
    )
    sum += Math.log(scores.reduce((total, score) => total + Math.exp(score - scores[label]), 0))
  }
  return sum / rows.length
}

function logisticLoss(rows: readonly Row[], weights: ArrayLike<number>): number {
  const twice = Float64Array.from({ length: 2 * weights.length }, (_, i) => (i % 2 === 1 ? weights[(i - 1) / 2] : 0))
  return softmaxLoss(rows, twice, 2)
}

/** No small change of a single weight may decrease the loss. */
function assertMinimum({ weights, averageLoss }: HindsightOptimum, lossOf: (weights: Float64Array) => number): void {
  assert.ok(Math.abs(lossOf(weights) - averageLoss) < 1e-12)
  for (let i = 0; i < weights.length; i++) {
    for (const step of [-1e-3, 1e-3]) {
      const moved = weights.slice()
      moved[i] += step
      assert.ok(lossOf(moved) > averageLoss - 1e-10, `weight ${i} by ${step}`)
    }
  }
}

/** Solves A·x = b by Gaussian elimination with pivoting. */
function solve(a: number[][], b: number[]): number[] {
  const rows = a.map((row, i) => [...row, b[i]])
  for (let k = 0; k < rows.length; k++) {
    const pivot = rows.reduce((best, row, i) => (i >= k && Math.abs(row[k]) > Math.abs(rows[best][k]) ? i : best), k)
    ;[rows[k], rows[pivot]] = [rows[pivot], rows[k]]
    for (let i = k + 1; i < rows.length; i++) {
      const factor = rows[i][k] / rows[k][k]
      for (let j = k; j <= rows.length; j++) rows[i][j] -= factor * rows[k][j]
    }
  }
  const x = b.map(() => 0)
  for (let i = rows.length - 1; i >= 0; i--) {
    let rest = rows[i][rows.length]
    for (let j = i + 1; j < rows.length; j++) rest -= rows[i][j] * x[j]
    x[i] = rest / rows[i][i]
  }
  return x
}

describe('the hindsight optimum', () => {
  it('of squared loss solves the normal equations', () => {
    const corners: Row[] = [
      [1, 1, 0, 0],
      [2, 1, 1, 0],
      [0, 1, 0, 1]
    ]
    fc.assert(
      fc.property(rowsOf(fc.integer({ min: -20, max: 20 }), 0), drawn => {
        const rows = [...corners, ...drawn]
        const pair = (i: number, j: number) => rows.reduce((sum, row) => sum + row[i] * row[j], 0)
        const expected = solve(
          [1, 2, 3].map(i => [1, 2, 3].map(j => pair(i, j))),
          [1, 2, 3].map(i => pair(i, 0))
        )
        const found = hindsightOptimum('linear', examplesOf(rows))
        assert.equal(found.outcome, 'minimum')
        assert.ok(found.gradientNorm <= 1e-8)
        for (const [i, weight] of expected.entries()) assert.ok(Math.abs(weight - found.weights[i]) < 1e-5)
      })
    )
  })

  it('of log loss is a minimum unless the classes are separable', () => {
    fc.assert(
      fc.property(rowsOf(fc.integer({ min: 0, max: 1 }), 1), rows => {
        const found = hindsightOptimum('logistic', examplesOf(rows))
        assert.ok(found.gradientNorm <= 1e-8, `${found.gradientNorm}`)
        if (found.outcome === 'minimum') assertMinimum(found, weights => logisticLoss(rows, weights))
        else {
          assert.equal(found.outcome, 'separable')
          assert.ok(found.averageLoss < 1e-6)
        }
      })
    )
  })

  it('of softmax is a minimum, which for two classes equals that of the logistic model', () => {
    fc.assert(
      fc.property(rowsOf(fc.integer({ min: 0, max: 2 }), 12), rows => {
        const found = hindsightOptimum('softmax', examplesOf(rows), { classes: 3 })
        assert.ok(found.gradientNorm <= 1e-8, `${found.gradientNorm}`)
        if (found.outcome === 'minimum') assertMinimum(found, weights => softmaxLoss(rows, weights, 3))
        const two = examplesOf(rows.map(([label, ...features]): Row => [Math.min(1, label), ...features]))
        const softmax = hindsightOptimum('softmax', two, { classes: 2 })
        const logistic = hindsightOptimum('logistic', two)
        assert.equal(softmax.outcome, logistic.outcome)
        assert.ok(Math.abs(softmax.averageLoss - logistic.averageLoss) < 1e-6)
      }),
      { numRuns: 50 }
    )
  })

  it('of the smooth hinge has a zero gradient in the learner', () => {
    fc.assert(
      fc.property(rowsOf(fc.integer({ min: 0, max: 1 }), 1), rows => {
        const examples = examplesOf(rows)
        const { outcome, weights, weightNorm } = hindsightOptimum('hinge', examples)
        assert.equal(outcome, 'minimum')
        const learner = createLearner({ model: 'hinge', dimension: 3 })
        const sum = learner.initial()
        learner.addGradient([Float32Array.from(weights)], examples, 0, examples.size, sum)
        // The learner's weights are float32, so the error of scores and slopes is proportional to the weights.
        for (const g of sum[0]) assert.ok(Math.abs(g) / rows.length < 1e-5 + 1e-6 * weightNorm)
      })
    )
  })

  it('supports features without inputs, and duplicate features', () => {
    const rows: Row[] = [
      [0, 1, 1, 0, 0.5],
      [1, 1, 1, 0, 0.5],
      [1, 1, 1, 0, -2],
      [0, 1, 1, 0, 1],
      [1, 1, 1, 0, 1]
    ]
    const alone = hindsightOptimum('logistic', examplesOf(rows.map(([label, one, , , x]): Row => [label, one, x])))
    const found = hindsightOptimum('logistic', examplesOf(rows), { dimension: 9 })
    assert.equal(found.outcome, 'minimum')
    assert.ok(Math.abs(found.averageLoss - alone.averageLoss) < 1e-12)
    assert.equal(found.weights.length, 9)
  })

  it('returns its progress if it is stopped', () => {
    const rows = Array.from({ length: 60 }, (_, i): Row => [(i * 7) % 3 === 0 ? 1 : 0, 1, i / 8, ((i * i) % 11) * 100])
    const found = hindsightOptimum('logistic', examplesOf(rows), { maxPasses: 6 })
    assert.equal(found.outcome, 'stopped')
    assert.ok(found.gradientNorm > 1e-8 && found.averageLoss < Math.log(2))
  })

  it('rejects inputs that do not fit the model, and an empty batch', () => {
    assert.throws(() => hindsightOptimum('logistic', examplesOf([])), /no inputs/)
    assert.throws(() => hindsightOptimum('logistic', examplesOf([[2, 1]])), /label 2 does not fit/)
    assert.throws(() => hindsightOptimum('softmax', examplesOf([[1, 1]])), /--classes/)
    assert.throws(() => hindsightOptimum('linear', examplesOf([[1, 1, 1]]), { dimension: 1 }), /feature 1 is beyond/)
  })
})

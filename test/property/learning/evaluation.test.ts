/** Figures of an evaluation, compared with their definitions on small lists. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { commitRows, Evaluation, pearson, spearman } from '../../../src/learning/index.js'

const CLASSES = 4
const number = fc.integer({ min: 0, max: CLASSES - 1 })
const pairs = fc.array(fc.tuple(number, number, fc.constantFrom(0.5, 1, 2)), { minLength: 1, maxLength: 60 })

function evaluate(rows: readonly (readonly [label: number, predicted: number, weight: number])[]) {
  const kind = { kind: 'classes', classes: CLASSES } as const
  const evaluation = new Evaluation(kind)
  const entries = Float64Array.from(rows.flatMap(([label, predicted]) => [label, predicted, 0.5, 1]))
  commitRows(
    evaluation,
    entries,
    kind,
    Float32Array.from(rows, ([, , weight]) => weight)
  )
  return evaluation.figures(rows.reduce((sum, [, , weight]) => sum + weight, 0))
}

function weightOf(
  rows: readonly (readonly [number, number, number])[],
  is: (label: number, predicted: number) => boolean
) {
  return rows.reduce((sum, [label, predicted, weight]) => sum + (is(label, predicted) ? weight : 0), 0)
}

describe('an evaluation', () => {
  it('gives precision, recall and F1 of each class, and their mean', () => {
    fc.assert(
      fc.property(pairs, rows => {
        const { byClass = [], macroF1, loss, accuracy } = evaluate(rows)
        const f1s: number[] = []
        for (const [k, figures] of byClass.entries()) {
          const both = weightOf(rows, (label, predicted) => label === k && predicted === k)
          const actual = weightOf(rows, label => label === k)
          const claimed = weightOf(rows, (_, predicted) => predicted === k)
          assert.equal(figures.inputs, actual)
          assert.equal(figures.precision, claimed === 0 ? 0 : both / claimed)
          assert.equal(figures.recall, actual === 0 ? 0 : both / actual)
          const { precision: p, recall: r } = figures
          assert.ok(Math.abs(figures.f1 - (p + r === 0 ? 0 : (2 * p * r) / (p + r))) < 1e-12)
          if (actual + claimed > 0) f1s.push(figures.f1)
        }
        assert.ok(Math.abs((macroF1 ?? 0) - f1s.reduce((a, b) => a + b) / f1s.length) < 1e-12)
        assert.ok(Math.abs(loss - 1) < 1e-12)
        const hits = weightOf(rows, (label, predicted) => label === predicted)
        assert.ok(Math.abs((accuracy ?? 0) - hits / weightOf(rows, () => true)) < 1e-12)
      })
    )
  })

  it('gives the correlation of classes and predictions: of two classes that of Pearson, otherwise 1 only if all are right', () => {
    fc.assert(
      fc.property(pairs, rows => {
        const two = rows.map(([label, predicted]) => [label % 2, predicted % 2, 1] as const)
        const expected = pearson(
          two.map(([label]) => label),
          two.map(([, predicted]) => predicted)
        )
        assert.ok(Math.abs((evaluate(two).matthews ?? 0) - (expected ?? 0)) < 1e-9)
        const { matthews = 0, accuracy } = evaluate(rows)
        assert.ok(matthews >= -1 - 1e-12 && matthews <= 1 + 1e-12)
        if (accuracy === 1 && new Set(rows.map(([label]) => label)).size > 1) assert.ok(Math.abs(matthews - 1) < 1e-12)
        if (matthews > 1 - 1e-12) assert.equal(accuracy, 1)
      })
    )
  })

  it('gives correlations of numbers; that of ranks does not change if predictions are transformed monotonically', () => {
    const values = fc.array(fc.tuple(fc.integer({ min: -20, max: 20 }), fc.integer({ min: -20, max: 20 })), {
      minLength: 3,
      maxLength: 40
    })
    fc.assert(
      fc.property(values, rows => {
        const kind = { kind: 'number', loss: { classifies: false, value: () => 0 } } as const
        const evaluation = new Evaluation(kind)
        commitRows(evaluation, Float64Array.from(rows.flat()), kind)
        const [a, b] = [rows.map(([target]) => target), rows.map(([, prediction]) => prediction)]
        const figures = evaluation.figures(0)
        assert.equal(figures.pearson, pearson(a, b))
        assert.equal(figures.spearman, spearman(a, b))
        const cubed = spearman(
          a,
          b.map(value => value ** 3)
        )
        assert.equal(spearman(a, b), cubed)
        if (new Set(a).size > 1) assert.ok(Math.abs((pearson(a, a) ?? 0) - 1) < 1e-12)
        assert.equal(pearson(a, Array(a.length).fill(3)), undefined)
      })
    )
  })
})

/** Permutation importance, for random linear models and sparse rows. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { importanceOf, rowsWithin } from '../../../src/cli/explain/importance.js'
import { RowBuffer } from '../../../src/data/index.js'
import { createLearner, type Examples } from '../../../src/learning/index.js'

const FEATURES = 5
const values = fc.array(fc.integer({ min: -3, max: 3 }), { minLength: FEATURES, maxLength: FEATURES })
const tables = fc.array(fc.record({ label: fc.integer({ min: -5, max: 5 }), values }), { minLength: 1, maxLength: 30 })

/** Zeros are left out. */
function rowsOf(table: readonly { readonly label: number; readonly values: readonly number[] }[]): Examples {
  const out = new RowBuffer()
  for (const { label, values } of table) {
    out.reserve(1, FEATURES)
    for (const [index, value] of values.entries()) {
      if (value === 0) continue
      out.indices[out.entries] = index
      out.values[out.entries++] = value
    }
    out.labels[out.size] = label
    out.offsets[++out.size] = out.entries
  }
  return out.view()
}

const learner = createLearner({ model: 'linear', dimension: FEATURES })
const columnOf = (feature: number) => (feature === 0 ? undefined : feature < 3 ? 'pair' : `column ${feature}`)
const ofRows = (rows: Examples, weights: readonly number[], seed = 0) => {
  const parameters = [Float32Array.from(weights)]
  return importanceOf({ learner, parameters, rows, columnOf, repeats: 3, seed, onProgress: () => undefined })
}

describe('permutation importance', () => {
  it('of a column without weights is 0, and the same for the same seed', () => {
    fc.assert(
      fc.property(tables, values, fc.integer(), (table, weights, seed) => {
        const rows = rowsOf(table)
        const own = weights.map((weight, feature) => (feature === 3 ? 0 : weight))
        const found = ofRows(rows, own, seed)
        assert.deepEqual(ofRows(rows, own, seed), found)
        const unused = found.find(({ column }) => column === 'column 3')
        if (unused) assert.deepEqual([unused.increase, unused.deviation], [0, 0])
        assert.ok(found.every(({ increase }, i) => i === 0 || increase <= found[i - 1].increase))
        assert.ok(found.every(({ column }) => ['pair', 'column 3', 'column 4'].includes(column)))
      })
    )
  })

  it('is not negative for the model that made the labels', () => {
    fc.assert(
      fc.property(tables, values, (table, weights) => {
        const exact = table.map(row => ({
          ...row,
          label: row.values.reduce((sum, value, i) => sum + value * weights[i], 0)
        }))
        for (const { increase } of ofRows(rowsOf(exact), weights)) assert.ok(increase >= 0, `${increase}`)
      })
    )
  })

  it('takes fewer rows the more values they have, or the more weights a network has, and no fewer than 50', () => {
    const tables = fc.record({
      size: fc.integer({ min: 1, max: 3000 }),
      entries: fc.integer({ min: 1, max: 2000 }),
      weights: fc.option(fc.integer({ min: 1, max: 10_000_000 }), { nil: undefined })
    })
    fc.assert(
      fc.property(tables, ({ size, entries, weights }) => {
        const rows = {
          size,
          labels: new Float32Array(size),
          offsets: Int32Array.from({ length: size + 1 }, (_, row) => row * entries),
          indices: new Int32Array(0),
          values: new Float32Array(0)
        }
        const found = rowsWithin(rows, weights)
        assert.ok(found >= Math.min(size, 50) && found <= size)
        const work = (count: number) => count * entries * (weights === undefined ? entries / 1e8 : weights / 5e9)
        if (found > 50) assert.ok(work(found) <= 1.001)
        if (found < size) assert.ok(work(found + 1) >= 0.999)
      })
    )
  })
})

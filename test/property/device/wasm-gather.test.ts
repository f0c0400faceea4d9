/** Gathering rows on the wasm backend. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import * as tf from '#tfjs'
import { openDevice } from '../../../src/device/index.js'

const tables = fc
  .record({ rows: fc.integer({ min: 1, max: 9 }), row: fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 2 }) })
  .chain(({ rows, row }) =>
    fc.record({
      shape: fc.constant([rows, ...row]),
      indices: fc.array(fc.nat(rows - 1), { minLength: 1, maxLength: 12 }),
      dtype: fc.constantFrom('float32' as const, 'int32' as const)
    })
  )

describe('gathering rows on wasm', () => {
  before(() => openDevice('wasm'))

  it('returns the rows of the table', () => {
    fc.assert(
      fc.property(tables, ({ shape, indices, dtype }) => {
        const size = tf.util.sizeFromShape(shape.slice(1))
        const values = Array.from({ length: shape[0] * size }, (_, i) => i)
        tf.tidy(() => {
          const found = tf.gather(tf.tensor(values, [...shape], dtype), tf.tensor1d(indices, 'int32'))
          assert.deepEqual(found.shape, [indices.length, ...shape.slice(1)])
          const expected = indices.flatMap(index => values.slice(index * size, (index + 1) * size))
          assert.deepEqual([...found.dataSync()], expected)
        })
      }),
      { numRuns: 100 }
    )
  })

  it('works along other axes, and rejects rows out of range', () => {
    tf.tidy(() => {
      const table = tf.tensor2d([1, 2, 3, 4], [2, 2])
      assert.deepEqual([...tf.gather(table, tf.tensor1d([1], 'int32'), 1).dataSync()], [2, 4])
      assert.throws(() => tf.gather(table, tf.tensor1d([2], 'int32')), /row 2 is out of range \(2 rows\)/)
    })
  })
})

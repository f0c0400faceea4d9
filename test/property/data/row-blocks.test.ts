/** Batches of rows read back as they were written as bytes. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { blockBytes, decodeBlock, encodeBlock, lengthOf } from '../../../src/data/row-blocks.js'
import { RowBuffer, type Rows } from '../../../src/data/rows.js'

const float = fc.oneof(fc.constantFrom(1, 0, -0), fc.float({ noNaN: true }))
const row = fc.record({
  label: fc.oneof(fc.constant(Number.NaN), fc.double({ noNaN: true })),
  weight: fc.constantFrom(1, 1, 0.5),
  numeric: fc.nat(3),
  entries: fc.array(fc.tuple(fc.nat(2 ** 31 - 2), float), { maxLength: 6 })
})

function batchOf(rows: readonly (typeof row extends fc.Arbitrary<infer R> ? R : never)[], skipped: number): Rows {
  const out = new RowBuffer()
  for (const { label, weight, numeric, entries } of rows) {
    out.reserve(1, entries.length)
    for (const [i, [index, value]] of entries.entries()) {
      out.indices[out.entries + i] = index
      out.values[out.entries + i] = value
    }
    out.labels[out.size] = label
    out.weigh(weight)
    out.numeric[out.size] = numeric
    out.entries += entries.length
    out.offsets[++out.size] = out.entries
  }
  const { offsets, labels, numeric, weights, ...rest } = out.view()
  const first = Math.min(skipped, rows.length)
  return {
    ...rest,
    size: rows.length - first,
    offsets: offsets.subarray(first),
    labels: labels.subarray(first),
    numeric: numeric.subarray(first),
    weights: weights?.subarray(first)
  }
}

function plain({ size, labels, numeric, offsets, indices, values, weights }: Rows) {
  return Array.from({ length: size }, (_, i) => ({
    label: labels[i],
    numeric: numeric[i],
    weight: weights?.[i],
    indices: [...indices.subarray(offsets[i], offsets[i + 1])],
    values: [...values.subarray(offsets[i], offsets[i + 1])]
  }))
}

describe('blocks of rows', () => {
  it('read back what was written, one after another', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.array(row, { maxLength: 8 }), fc.nat(2)), { maxLength: 4 }), given => {
        const batches = given.map(([rows, first]) => batchOf(rows, first))
        const bytes = new Uint8Array(batches.reduce((sum, rows) => sum + blockBytes(rows), 0))
        let at = 0
        for (const [i, rows] of batches.entries()) {
          encodeBlock(rows, i, bytes.subarray(at))
          at += blockBytes(rows)
        }
        at = 0
        for (const [i, rows] of batches.entries()) {
          const read = decodeBlock(bytes, at)
          assert.equal(read.skipped, i)
          assert.deepEqual(plain(read.rows), plain(rows))
          at += lengthOf(bytes, at)
        }
        assert.equal(at, bytes.length)
      })
    )
  })
})

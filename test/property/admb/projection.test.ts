/** Projections of integer sums. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { projectionOf, SEEDS, totalOf } from '../../../src/admb/projection.js'
import { MAX_SUM, packed } from '../../../src/base/lattice.js'
import { compactCopy, findSupport } from '../../../src/base/support.js'

const seeds = fc.integer({ min: 0, max: SEEDS - 1 })
const elements = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: -MAX_SUM / 2, max: MAX_SUM / 2 })), {
  minLength: 1,
  maxLength: 50
})
const sums = fc.array(elements, { minLength: 1, maxLength: 3 })

describe('projections', () => {
  it('of a total are the totals of the projections', () => {
    fc.assert(
      fc.property(fc.array(elements, { minLength: 1, maxLength: 4 }), seeds, (parts, seed) => {
        const length = Math.max(...parts.map(part => part.length))
        const blocks = parts.map(part => Float32Array.from({ length }, (_, i) => ((part[i] ?? 0) / 2 ** 2) | 0))
        const total = Float32Array.from({ length }, (_, i) => blocks.reduce((sum, block) => sum + block[i], 0))
        assert.equal(projectionOf([total], seed), totalOf(blocks.map(block => projectionOf([block], seed))))
      })
    )
  })

  it('do not depend on how a sum is stored', () => {
    fc.assert(
      fc.property(sums, seeds, (lists, seed) => {
        const dense = lists.map(list => {
          const block = new Float32Array(2 ** 15)
          block.set(list)
          return block
        })
        const expected = projectionOf(dense, seed)
        const sparse = dense.map(block => compactCopy(block))
        assert.ok(sparse.every(block => 'indices' in block))
        assert.equal(projectionOf(sparse, seed), expected)
        for (const block of dense) findSupport(block)
        assert.equal(projectionOf(dense, seed), expected)
        assert.equal(projectionOf(dense.map(packed), seed), expected)
      }),
      { numRuns: 20 }
    )
  })

  it('are exact for the largest integers, and for long blocks', () => {
    const block = new Float32Array(100_000).fill(MAX_SUM)
    const negative = block.map(value => -value)
    assert.equal(totalOf([projectionOf([block], 1), projectionOf([negative], 1)]), 0)
    const halves = [block.map((value, i) => (i % 2 ? value : 0)), block.map((value, i) => (i % 2 ? 0 : value))]
    assert.equal(totalOf(halves.map(half => projectionOf([half], 2))), projectionOf([block], 2))
  })

  it('differ for sums that differ in an element or in their order', () => {
    let equal = 0
    fc.assert(
      fc.property(sums, seeds, fc.nat(), fc.integer({ min: 1, max: 100 }), (lists, seed, at, change) => {
        const sum = lists.map(list => Float32Array.from(list))
        const other = sum.map(block => block.slice())
        const block = other[at % other.length]
        block[at % block.length] += change
        if (projectionOf(sum, seed) === projectionOf(other, seed)) equal++
      }),
      { numRuns: 1000, seed: 7 }
    )
    assert.equal(equal, 0)
    assert.notEqual(projectionOf([Float32Array.of(1, 2)], 3), projectionOf([Float32Array.of(2, 1)], 3))
    assert.notEqual(
      projectionOf([Float32Array.of(1), Float32Array.of(2)], 3),
      projectionOf([Float32Array.of(2), Float32Array.of(1)], 3)
    )
  })
})

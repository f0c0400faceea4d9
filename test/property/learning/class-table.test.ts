/** The table of classes that are added while a model learns. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import {
  addedClasses,
  adopted,
  countAdded,
  extendsTable,
  fitsTable,
  propose,
  tableLength,
  withClass
} from '../../../src/learning/models/class-table.js'

const name = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
  .filter(text => fitsTable(text) && Buffer.from(text).toString() === text)
const names = fc.uniqueArray(name, { maxLength: 6 })

describe('a table of classes', () => {
  it('keeps names in the order in which they are added, until it is full', () => {
    fc.assert(
      fc.property(names, fc.integer({ min: 0, max: 6 }), (all, slots) => {
        let table: Float32Array | undefined = new Float32Array(tableLength(slots))
        for (const [index, one] of all.entries()) {
          const next: Float32Array | undefined = withClass(table, one)
          assert.equal(next === undefined, index >= slots)
          if (next === undefined) return
          assert.ok(extendsTable(table, next))
          assert.ok(!extendsTable(next, table))
          table = next
          assert.deepEqual(addedClasses(table), all.slice(0, index + 1))
          assert.equal(countAdded(table), index + 1)
        }
      })
    )
  })

  it('adopts proposals that were added up in any order, sorted, and none that is known', () => {
    fc.assert(
      fc.property(
        names,
        names,
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 0, max: 1000 }),
        (all, named, peers, round) => {
          const slots = 6
          const sum = new Float32Array(tableLength(slots))
          for (let peer = 0; peer < peers; peer++) {
            const own = new Float32Array(sum.length)
            for (const one of all) if ((peer + one.length) % 3 > 0 || peer === 0) propose(own, one, round)
            for (let i = 0; i < sum.length; i++) sum[i] += own[i]
          }
          const empty = new Float32Array(sum.length)
          const found = addedClasses(adopted(empty, sum, named))
          assert.deepEqual(found, [...found].sort())
          for (const one of found) assert.ok(all.includes(one) && !named.includes(one))
          assert.deepEqual(addedClasses(adopted(adopted(empty, sum, named), sum, named)), found)
        }
      ),
      { numRuns: 300 }
    )
  })

  it('adopts every name after some rounds, although names share records', () => {
    fc.assert(
      fc.property(names, all => {
        let table = new Float32Array(tableLength(8))
        for (let round = 0; round < 60 && countAdded(table) < all.length; round++) {
          const sum = new Float32Array(table.length)
          const known = addedClasses(table)
          for (const one of all) if (!known.includes(one)) propose(sum, one, round)
          const next = adopted(table, sum, [])
          assert.ok(extendsTable(table, next))
          table = next as Float32Array<ArrayBuffer>
        }
        assert.deepEqual([...addedClasses(table)].sort(), [...all].sort())
      }),
      { numRuns: 200 }
    )
  })

  it('ignores blocks that are not sums of proposals', () => {
    fc.assert(
      fc.property(fc.array(fc.float(), { minLength: 128, maxLength: 128 }), numbers => {
        const table = new Float32Array(tableLength(2))
        assert.equal(adopted(table, Float32Array.from(numbers), []), table)
      })
    )
  })
})

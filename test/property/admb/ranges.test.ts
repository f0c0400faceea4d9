/** Sets of input numbers behave like sets. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { isIn, type Ranges, sizeOf, without, withRange } from '../../../src/admb/core/journal.js'

const interval = fc.tuple(fc.nat(60), fc.integer({ min: 1, max: 12 }))

function members(ranges: Ranges): number[] {
  const found: number[] = []
  for (let i = 0; i < ranges.length; i += 2) for (let n = ranges[i]; n < ranges[i + 1]; n++) found.push(n)
  return found
}

describe('ranges', () => {
  it('hold the numbers that were added and not removed, sorted and merged', () => {
    fc.assert(
      fc.property(fc.array(interval, { maxLength: 12 }), fc.array(interval, { maxLength: 6 }), (added, removed) => {
        const all = added.reduce<Ranges>((ranges, [first, count]) => withRange(ranges, first, first + count), [])
        const expected = new Set(added.flatMap(([first, count]) => Array.from({ length: count }, (_, i) => first + i)))
        assert.deepEqual(
          members(all),
          [...expected].sort((a, b) => a - b)
        )
        for (let i = 2; i < all.length; i += 2) assert.ok(all[i] > all[i - 1], 'neighbouring ranges are merged')
        const gone = removed.reduce<Ranges>((ranges, [first, count]) => withRange(ranges, first, first + count), [])
        const rest = without(all, gone)
        for (const number of members(gone)) expected.delete(number)
        assert.deepEqual(
          members(rest),
          [...expected].sort((a, b) => a - b)
        )
        assert.equal(sizeOf(rest), expected.size)
        for (let number = 0; number < 80; number++) assert.equal(isIn(rest, number), expected.has(number))
      })
    )
  })
})

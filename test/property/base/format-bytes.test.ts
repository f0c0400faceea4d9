/** Bytes that exceed a limit are told apart from it, and the printed need suffices as the limit. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { formatBytes, formatExcess } from '../../../src/base/errors.js'
import { bytes } from '../../../src/cli/options/values.js'

describe('the bytes of a limit and of what exceeds it', () => {
  it('differ, however close they are', () => {
    const limits = fc.oneof(fc.integer({ min: 1, max: 2 ** 21 }), fc.integer({ min: 1, max: 2 ** 40 }))
    const excesses = fc.oneof(fc.integer({ min: 1, max: 2 ** 16 }), fc.integer({ min: 1, max: 2 ** 40 }))
    fc.assert(
      fc.property(limits, excesses, (limit, excess) => {
        const needed = limit + excess
        const [allowed, needs] = formatExcess(limit, needed)
        assert.notEqual(allowed, needs)
        assert.ok(bytes(needs.replace(' ', '')) >= needed)
        if (formatBytes(limit) !== formatBytes(needed)) assert.equal(allowed, formatBytes(limit))
      }),
      { examples: [[1_570_000, 100]] }
    )
  })
})

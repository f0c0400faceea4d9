import assert from 'node:assert/strict'
import fc from 'fast-check'
import { ProtocolViolationError } from '../../../src/network/errors.js'
import { decodeCatchUp, encodeCatchUp } from '../../../src/network/gossip.js'
import type { Topic } from '../../../src/network/limits.js'

const message = fc.uint8Array({ maxLength: 300 })

describe('a gossip catch-up', () => {
  it('survives encoding and decoding', () => {
    fc.assert(
      fc.property(message, message, (beacon, head) => {
        const latest = new Map<Topic, Uint8Array>([
          ['head', head],
          ['beacon', beacon]
        ])
        assert.deepEqual(decodeCatchUp(encodeCatchUp(latest)), latest)
      })
    )
    assert.equal(decodeCatchUp(encodeCatchUp(new Map())).size, 0)
  })

  it('is rejected when truncated, repeated, or malformed', () => {
    const bytes = encodeCatchUp(new Map([['head', Uint8Array.of(1, 2, 3)]]))
    assert.deepEqual([...bytes], [1, 3, 0, 1, 2, 3])
    for (let end = 1; end < bytes.length; end++) {
      assert.throws(() => decodeCatchUp(bytes.subarray(0, end)), ProtocolViolationError)
    }
    assert.throws(() => decodeCatchUp(Uint8Array.from([...bytes, ...bytes])), ProtocolViolationError)
    assert.throws(() => decodeCatchUp(Uint8Array.of(3, 0, 0)), ProtocolViolationError)
    assert.throws(() => decodeCatchUp(new Uint8Array(3 + 16_385).fill(1, 1, 2).fill(64, 2, 3)), ProtocolViolationError)
  })
})

import assert from 'node:assert/strict'
import fc from 'fast-check'
import { ProtocolViolationError } from '../../../src/network/errors.js'
import { decodeGreeting, encodeGreeting } from '../../../src/network/greeting.js'
import type { Topic } from '../../../src/network/topics.js'

const message = fc.uint8Array({ maxLength: 300 })

describe('a greeting', () => {
  it('survives its encoding', () => {
    fc.assert(
      fc.property(message, message, (beacon, head) => {
        const latest = new Map<Topic, Uint8Array>([
          ['head', head],
          ['beacon', beacon]
        ])
        assert.deepEqual(decodeGreeting(encodeGreeting(latest)), latest)
      })
    )
    assert.equal(decodeGreeting(encodeGreeting(new Map())).size, 0)
  })

  it('is refused when cut short, repeated, or arbitrary', () => {
    const bytes = encodeGreeting(new Map([['head', Uint8Array.of(1, 2, 3)]]))
    assert.deepEqual([...bytes], [1, 3, 0, 1, 2, 3])
    for (let end = 1; end < bytes.length; end++) {
      assert.throws(() => decodeGreeting(bytes.subarray(0, end)), ProtocolViolationError)
    }
    assert.throws(() => decodeGreeting(Uint8Array.from([...bytes, ...bytes])), ProtocolViolationError)
    assert.throws(() => decodeGreeting(Uint8Array.of(3, 0, 0)), ProtocolViolationError)
    assert.throws(() => decodeGreeting(new Uint8Array(3 + 16_385).fill(1, 1, 2).fill(64, 2, 3)), ProtocolViolationError)
  })
})

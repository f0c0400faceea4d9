import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { digest } from '../../../src/learning/digest.js'

const f = (...values: number[]) => Float32Array.from(values)

describe('digest', () => {
  it('is SHA-256 over lengths and little-endian bits, truncated to 128 bits', () => {
    const bytes = Buffer.alloc(24)
    ;[1, 1, 2].forEach((n, i) => {
      bytes.writeUInt32LE(n, 4 * i)
    })
    bytes.writeFloatLE(1.5, 12)
    bytes.writeFloatLE(-2, 16)
    const expected = createHash('sha256').update(bytes.subarray(0, 20)).digest('hex').slice(0, 32)
    assert.equal(digest([[f(1.5, -2)]]), expected)
  })

  it('differs for every change of value, sign of zero, order, and division into blocks', () => {
    const variants = [
      [[f(1, 2), f(3)]],
      [[f(1, 2), f(4)]],
      [[f(2, 1), f(3)]],
      [[f(1), f(2, 3)]],
      [[f(1, 2, 3)]],
      [[f(1, 2)], [f(3)]],
      [[f(1, 2), f(3), f()]],
      [[f(0)]],
      [[f(-0)]],
      [[]],
      []
    ]
    assert.equal(new Set(variants.map(digest)).size, variants.length)
  })

  it('reads exactly the given view', () => {
    const whole = f(9, 1, 2, 9)
    assert.equal(digest([[whole.subarray(1, 3)]]), digest([[f(1, 2)]]))
  })
})

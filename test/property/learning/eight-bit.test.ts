/** State in eight bits: its precision, and equal bits on all machines. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { digest } from '../../../src/learning/digest.js'
import { OptionError } from '../../../src/learning/options.js'
import { type Encoding, pack, packedLength, unpack } from '../../../src/learning/rules/compact.js'
import { createRule } from '../../../src/learning/rules/index.js'
import { SECTION } from '../../../src/numeric/block-code.js'
import { randomFrom } from '../../support/learning/rows.js'

function packed(values: Float32Array, encoding: Encoding): Float32Array {
  const into = new Float32Array(packedLength(values.length))
  pack(values, encoding, into, values.length, 0)
  return into
}

function there(values: Float32Array, encoding: Encoding): Float32Array {
  return unpacked(packed(values, encoding), encoding, values.length, 0)
}

function unpacked(from: Float32Array, encoding: Encoding, length: number, start: number): Float32Array {
  const into = new Float32Array(length - start)
  unpack(from, encoding, length, start, into)
  return into
}

const floats = fc.float({ min: Math.fround(-1e30), max: Math.fround(1e30), noNaN: true })
const vectors = fc.float32Array({ minLength: 1, maxLength: 40, noNaN: true, noDefaultInfinity: true })

describe('eight-bit numbers', () => {
  it('keep zeros, signs and the largest magnitude, with a bounded relative error', () => {
    fc.assert(
      fc.property(vectors, values => {
        const back = there(values, 'signed')
        const most = values.reduce((max, value) => Math.max(max, Math.abs(value)), 0)
        values.forEach((value, i) => {
          if (value === 0) assert.equal(back[i], 0)
          else if (value === most) assert.equal(back[i], value)
          if (Math.abs(value) > 1e-6 * most && most > 1e-30) {
            assert.equal(Math.sign(back[i]), Math.sign(value))
            // Half the distance between adjacent codes: a decade has 2^k of them, with k from 6 down to 0.
            const decade = Math.min(6, Math.floor(-Math.log10(Math.abs(value) / most)))
            const apart = (0.9 * 10 ** -decade) / 2 ** (6 - decade)
            assert.ok(Math.abs(back[i] - value) <= 0.76 * apart * most, `${value} of ${most}: ${back[i]}`)
          }
        })
      })
    )
  })

  it('never round a non-zero number to zero, because it may be a divisor', () => {
    const values = Float32Array.of(1, 1e-20, 0, 3e-9)
    assert.deepEqual([...there(values, 'squares')].map(Math.sign), [1, 1, 0, 1])
    assert.deepEqual([...there(Float32Array.of(-1, -1e-20, 1e-20), 'signed')].map(Math.sign), [-1, -1, 1])
  })

  it('are whole numbers below 2^24 and finite scales, in a third of the memory', () => {
    fc.assert(
      fc.property(fc.array(floats, { minLength: 1, maxLength: 50 }), numbers => {
        const block = packed(Float32Array.from(numbers), 'signed')
        assert.ok(block.every(Number.isFinite))
        const cells = Math.ceil(numbers.length / 3)
        assert.ok(block.subarray(0, cells).every(cell => Number.isInteger(cell) && cell >= 0 && cell < 2 ** 24))
      })
    )
    assert.ok(packedLength(1e6) < 1e6 / 2.99 + 500)
  })

  it('are the same if packed as a whole or in parts', () => {
    const random = randomFrom(4)
    const values = Float32Array.from({ length: 2 * SECTION + 1000 }, () => random() - 0.5)
    const parts = new Float32Array(packedLength(values.length))
    for (let at = 0; at < values.length; at += SECTION) {
      pack(values.subarray(at, at + SECTION), 'signed', parts, values.length, at)
    }
    assert.deepEqual(parts, packed(values, 'signed'))
    const tail = unpacked(parts, 'signed', values.length, SECTION)
    assert.deepEqual(tail, there(values, 'signed').subarray(SECTION))
  })

  it('give the rule the same bits on every machine', () => {
    const rule = createRule({ name: 'adam', bits: 8 })
    const length = 5000
    const layout = { blocks: [{ name: 'a', length }] }
    let now = rule.step(
      {
        parameters: [new Float32Array(length)],
        state: rule.stateLayout(layout).blocks.map(block => new Float32Array(block.length))
      },
      [Float32Array.from({ length }, (_, i) => ((i * 7919) % 1009) / 512 - 1)],
      3,
      0
    )
    now = rule.step(now, [Float32Array.from({ length }, (_, i) => ((i * 104729) % 2003) / 1024 - 1)], 5, 1)
    assert.equal(digest([now.parameters, now.state]), 'e57f90fc889eb62d0baaa45886e47a1b')
    assert.equal(rule.description, 'adam(step=0.001,beta1=0.9,beta2=0.999,epsilon=1e-8,bits=8)')
  })

  it('support 8 or 32 bits, and no radius', () => {
    assert.throws(() => createRule({ name: 'adam', bits: 4 as 8 }), OptionError)
    assert.throws(() => createRule({ name: 'momentum', bits: 8, radius: 1 }), OptionError)
    assert.equal(createRule({ name: 'lars', bits: 32 }).description, createRule({ name: 'lars' }).description)
  })
})

import assert from 'node:assert/strict'
import { portableExp } from '../../../src/numeric/exp.js'

describe('portableExp', () => {
  it('agrees with Math.exp to a few units in the last place', () => {
    for (let x = -707.9; x < 709; x += 0.137) {
      const exact = Math.exp(x)
      assert.ok(Math.abs(portableExp(x) - exact) <= 3e-15 * exact, `at ${x}`)
    }
  })

  it('is correct at the limits of its range', () => {
    const edges = [0, -0, -708, 709, -Infinity, Infinity, 1e300]
    assert.deepEqual(edges.map(portableExp), [1, 1, 0, Infinity, 0, Infinity, Infinity])
    assert.ok(Number.isNaN(portableExp(Number.NaN)))
  })
})

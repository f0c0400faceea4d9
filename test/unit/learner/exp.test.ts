import assert from 'node:assert/strict'
import { portableExp } from '../../../src/learner/exp.js'

describe('portableExp', () => {
  it('agrees with Math.exp to a few units in the last place', () => {
    for (let x = -708; x < 709.7; x += 0.137) {
      const exact = Math.exp(x)
      assert.ok(Math.abs(portableExp(x) - exact) <= 3e-15 * exact, `at ${x}`)
    }
  })

  it('is right at the edges', () => {
    assert.deepEqual([0, -0, -746, 710, -Infinity, Infinity].map(portableExp), [1, 1, 0, Infinity, 0, Infinity])
    assert.ok(Number.isNaN(portableExp(Number.NaN)))
    assert.ok(portableExp(-740) > 0 && Number.isFinite(portableExp(709.77)))
  })
})

import assert from 'node:assert/strict'
import { portableLog, portableLog1p } from '../../../src/numeric/exp.js'

describe('portableLog', () => {
  it('agrees with Math.log to one unit in the last place', () => {
    for (let x = 1e-320; x < 1e308; x *= 1.37) {
      const exact = Math.log(x)
      assert.ok(Math.abs(portableLog(x) - exact) <= 2.3e-16 * Math.abs(exact), `at ${x}`)
    }
    for (let x = 0.5; x < 2; x += 1e-4) assert.ok(Math.abs(portableLog(x) - Math.log(x)) <= 2.3e-16, `at ${x}`)
  })

  it('is correct at the limits of its range', () => {
    assert.deepEqual([1, 0, -0, Infinity].map(portableLog), [0, -Infinity, -Infinity, Infinity])
    assert.ok([-1, -Infinity, Number.NaN].every(x => Number.isNaN(portableLog(x))))
  })
})

describe('portableLog1p', () => {
  it('agrees with Math.log1p from 0 to 1', () => {
    for (let x = 1e-300; x <= 1; x *= 1.01) {
      const exact = Math.log1p(x)
      assert.ok(Math.abs(portableLog1p(x) - exact) <= 1e-15 * exact, `at ${x}`)
    }
    assert.deepEqual([0, 1].map(portableLog1p), [0, Math.LN2])
  })
})

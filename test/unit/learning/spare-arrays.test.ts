/** Arrays that are kept for reuse, and those that are dropped. */
import assert from 'node:assert/strict'
import { giveArray, spareArrays, takeArray } from '../../../src/numeric/spare-arrays.js'

// No other test uses arrays of this length.
const LENGTH = 2 ** 14 + 4321

describe('spare arrays', () => {
  it('are as many as are used, after a time in which more were needed', () => {
    const update = (arrays: number) => {
      const used = Array.from({ length: arrays }, () => takeArray(LENGTH))
      for (const array of used) giveArray(array)
    }
    for (let i = 0; i < 10; i++) update(5)
    assert.equal(spareArrays(LENGTH), 5)
    update(20)
    assert.equal(spareArrays(LENGTH), 20)
    for (let i = 0; i < 100; i++) update(5)
    assert.equal(spareArrays(LENGTH), 5)
  })

  it('are none of those that others have made', () => {
    giveArray(new Float32Array(LENGTH + 1))
    assert.equal(spareArrays(LENGTH + 1), 0)
    const short = takeArray(10)
    giveArray(short)
    assert.notEqual(takeArray(10), short)
  })
})

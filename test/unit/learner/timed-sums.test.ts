/** Figures over the last minute. */
import assert from 'node:assert/strict'
import { TimedSums } from '../../../src/learner/metrics/index.js'

describe('timed sums', () => {
  it('cover the time since the start, and after a minute the last 60 seconds', () => {
    const sums = new TimedSums()
    // One input per second: loss 1 for the first 100, then loss 3.
    const at = (second: number) => ({ inputs: second, loss: second + 2 * Math.max(0, second - 100), hits: second / 2 })
    for (let second = 0; second <= 30; second++) sums.note(1000 * second, at(second))
    assert.deepEqual(sums.figures(30_000, at(30)), { seconds: 30, inputs: 30, loss: 1, accuracy: 0.5 })
    for (let second = 31; second <= 200; second++) sums.note(1000 * second, at(second))
    assert.deepEqual(sums.figures(200_000, at(200)), { seconds: 60, inputs: 60, loss: 3, accuracy: 0.5 })
  })

  it('have no loss without inputs, and no accuracy for regression', () => {
    const sums = new TimedSums()
    sums.note(0, { inputs: 5, loss: 5 })
    assert.deepEqual(sums.figures(2000, { inputs: 5, loss: 5 }), { seconds: 2, inputs: 0 })
    assert.deepEqual(sums.figures(2000, { inputs: 6, loss: 8 }), { seconds: 2, inputs: 1, loss: 3 })
  })
})

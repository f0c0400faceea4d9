/** Differential privacy in the simulator: the scale of the noise, and keys that exclude each other. */
import assert from 'node:assert/strict'
import { Random } from '../../../sim/engine/random.js'
import { parseScenario, simulate } from '../../../sim/index.js'
import { addNoise } from '../../../src/learning/index.js'

describe('privacy in the simulator', () => {
  it('adds noise of the given deviation to weights, and none to other blocks', () => {
    const random = new Random(7)
    const sum = [new Float32Array(20_000), new Float32Array(3)]
    addNoise(sum, 3, () => random.normal())
    const mean = sum[0].reduce((total, x) => total + x, 0) / sum[0].length
    const square = sum[0].reduce((total, x) => total + x * x, 0) / sum[0].length
    // More than four standard errors.
    assert.ok(Math.abs(mean) < 0.09, `mean ${mean}`)
    assert.ok(Math.abs(Math.sqrt(square) - 3) < 0.065, `deviation ${Math.sqrt(square)}`)
    assert.deepEqual([...sum[1]], [0, 0, 0])
  })

  it('costs accuracy: a small epsilon has a larger loss', () => {
    const base = { nodes: 4, inputs: 4000, batch: 256, period: 20, rule: 'adagrad', clip: 1, sums: 'lattice' }
    const [without, strict] = [{}, { epsilon: 0.1, delta: 1e-6 }].map(
      keys => simulate(parseScenario({ ...base, ...keys }, 'test')).averageLoss
    )
    assert.ok(strict > without + 0.05, `${strict} and ${without}`)
  })

  it('names keys that are missing or exclude each other', () => {
    for (const keys of [
      { epsilon: 1, delta: 1e-6 },
      { epsilon: 1, clip: 1 },
      { epsilon: 1, delta: 1e-6, clip: 1, journal: true },
      { clip: 1, localSteps: 2 },
      { clip: 1, algorithm: 'serial' }
    ]) {
      assert.throws(() => parseScenario(keys, 'test'), { code: 'ERR_SCENARIO' }, JSON.stringify(keys))
    }
  })
})

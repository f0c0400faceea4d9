import assert from 'node:assert/strict'
import { OptionError } from '../../../src/learning/options.js'
import { type AveragingSpec, createAveraging } from '../../../src/learning/rules/averaging.js'
import type { Blocks } from '../../../src/learning/types.js'
import { randomFrom } from '../../support/learning/rows.js'

const random = randomFrom(3)
const lineage = Array.from({ length: 60 }, () => Float32Array.from({ length: 4 }, () => 2 * random() - 1))

function averaged(spec: AveragingSpec): Float32Array {
  const averaging = createAveraging(spec)
  let mean: Blocks = [new Float32Array(4)]
  lineage.forEach((w, updates) => {
    mean = averaging.average(mean, [w], updates)
  })
  return mean[0]
}

/** The average with explicit weights, oldest first. */
function weighed(weights: readonly number[]): number[] {
  const total = weights.reduce((a, b) => a + b)
  return [0, 1, 2, 3].map(i => weights.reduce((sum, weight, j) => sum + weight * lineage[j][i], 0) / total)
}

function assertClose(actual: Float32Array, expected: readonly number[]): void {
  actual.forEach((value, i) => {
    assert.ok(Math.abs(value - expected[i]) < 1e-5, `${value} against ${expected[i]}`)
  })
}

describe('averaging', () => {
  it('uniform is the mean of all predictors', () => {
    assertClose(averaged({ name: 'uniform' }), weighed(lineage.map(() => 1)))
  })

  it('tail weights the j-th predictor by j(j+1)…(j+decay−1)', () => {
    const weights = lineage.map((_, j) => (j + 1) * (j + 2) * (j + 3))
    assertClose(averaged({ name: 'tail', decay: 3 }), weighed(weights))
    assertClose(averaged({ name: 'tail', decay: 0 }), weighed(lineage.map(() => 1)))
  })

  it('exponential halves weights every half-life after the start', () => {
    const weights = lineage.map((_, j) => 2 ** ((j - 59) / 2))
    assertClose(averaged({ name: 'exponential', halfLife: 2 }), weighed(weights))
    assertClose(averaged({ name: 'exponential', halfLife: 1e6 }), weighed(lineage.map(() => 1)))
  })

  it('none is the newest predictor itself', () => {
    assert.deepEqual(averaged({ name: 'none' }), lineage[lineage.length - 1])
  })

  it('does not modify its arguments, and does not depend on the initial parameters', () => {
    for (const name of ['uniform', 'exponential', 'tail'] as const) {
      const [before, now] = [Float32Array.of(5), Float32Array.of(7)]
      const [next] = createAveraging({ name }).average([before], [now], 0)
      assert.deepEqual([before[0], now[0], next[0]], [5, 7, 7])
      assert.notEqual(next, now)
    }
  })

  it('has canonical descriptions, and rejects unknown names and options', () => {
    assert.equal(createAveraging().description, 'tail(decay=15)')
    assert.equal(createAveraging({ name: 'exponential' }).description, 'exponential(halfLife=1000)')
    assert.throws(() => createAveraging({ name: 'median' as 'uniform' }), OptionError)
    assert.throws(() => createAveraging({ name: 'exponential', halfLife: 0 }), OptionError)
    assert.throws(() => createAveraging({ name: 'uniform', decay: 1 } as AveragingSpec), /unknown option decay/)
  })
})

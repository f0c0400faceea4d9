/** The drift of the target weights, for drawn dimensions. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { Random } from '../../../sim/engine/random.js'
import { Target } from '../../../sim/streams/create.js'

describe('drift', () => {
  const weights = (of: Target, dimension: number) => Array.from({ length: dimension }, (_, i) => of.weight(i))
  const dot = (a: readonly number[], b: readonly number[]) => a.reduce((sum, value, i) => sum + value * b[i], 0)

  it('rotates w* by the requested angle, with a constant norm', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 30 }), fc.nat(1000), (dimension, seed) => {
        const drifting = new Target({ dimension, drift: 1, inputs: 400 }, new Random(seed))
        const start = weights(drifting, dimension)
        const length = dot(start, start)
        for (let input = 1; input <= 400; input++) {
          drifting.advance()
          const now = weights(drifting, dimension)
          assert.ok(Math.abs(dot(now, now) / length - 1) < 1e-5)
          assert.ok(Math.abs(dot(now, start) / length - Math.cos((2 * Math.PI * input) / 400)) < 1e-5)
        }
      }),
      { numRuns: 20 }
    )
  })
})

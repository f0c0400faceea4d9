/** Training in this process, for drawn inputs. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { train } from '../../../src/library/train.js'

describe('train', () => {
  it('learns any finite numbers', async () => {
    const float = fc.float({ noDefaultInfinity: true, noNaN: true, min: -1e6, max: 1e6 })
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(float, float), { minLength: 1, maxLength: 10 }), async inputs => {
        const { report } = await train({ model: 'logistic', inputs, labels: inputs.map((_, i) => i % 2) })
        assert.equal(report.inputs, inputs.length)
      }),
      { numRuns: 50 }
    )
  })
})

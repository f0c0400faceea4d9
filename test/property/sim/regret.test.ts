/** The regret bounds, for drawn numbers of inputs. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { regretBound } from '../../../sim/regret/bounds.js'

describe('the bound', () => {
  const terms = { radius: 1.5, smoothness: 2, deviation: 4 }

  it('is the sum of Theorem 3 over one stretch, for whole numbers of updates', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 600 }),
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 1, max: 50 }),
        (batch, extra, updates) => {
          const inputsPerUpdate = batch + extra
          let expected = 0
          for (let j = 1; j <= updates; j++) {
            expected += (inputsPerUpdate / j) * (2 * 1.5 ** 2 * 2 + 2 * 1.5 * (4 / Math.sqrt(batch)) * Math.sqrt(j))
          }
          const bound = regretBound(terms, { batch, inputsPerUpdate, learners: 1 }, [updates * inputsPerUpdate])
          assert.ok(Math.abs(bound / expected - 1) <= 1e-9, `${bound} and ${expected}`)
        }
      )
    )
  })

  it('grows with the inputs and with every interruption', () => {
    const pace = { batch: 10, inputsPerUpdate: 25, learners: 1 }
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 8 }), stretches => {
        const whole = stretches.reduce((sum, each) => sum + each, 0)
        const bound = regretBound(terms, pace, stretches)
        assert.ok(bound >= regretBound(terms, pace, [whole]) * (1 - 1e-12))
        assert.ok(bound < regretBound(terms, pace, [...stretches, 1]))
      })
    )
  })
})

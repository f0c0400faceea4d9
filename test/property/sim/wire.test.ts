/** Nodes with one dictionary for all edges do what nodes do whose frames are as on a network. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { parseScenario } from '../../../sim/index.js'
import { simulate } from '../../../sim/simulate.js'
import { trials } from '../../../sim/testing/trials.js'
import { share } from '../../support/runs.js'

const FIXED = { checks: false, signed: false, bandwidth: 0, nodeBandwidth: 0 }

describe('simulations without wire', () => {
  it('make the same updates and predictions, in random runs with all faults', () => {
    let updates = 0
    fc.assert(
      fc.property(trials(FIXED), ({ scenario, faults }) => {
        const [on, off] = [true, false].map(wire => {
          const run = simulate({ ...scenario, wire }, { faults })
          return [
            run.regret,
            run.newestRegret,
            run.updates,
            run.adoptions,
            run.used,
            run.held,
            run.messages,
            run.events
          ]
        })
        assert.deepEqual(off, on)
        updates += on[2]
      }),
      { numRuns: share(100) }
    )
    assert.ok(updates > 10, `${updates} updates`)
  })

  it('do not combine with what needs frames as on a network', () => {
    for (const keys of [{ checks: true }, { signed: true }, { bandwidth: 1000 }, { nodeBandwidth: 1000 }])
      assert.throws(() => parseScenario({ ...FIXED, wire: false, ...keys }, 'test'), /wire: checks, signed headers/)
  })
})

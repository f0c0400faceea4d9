/**
 * MaWo-DMB drops no more inputs at an update than the paper says. DMB and MaWo-DMB on the nodes of ADMB keep its properties under
 * faults. Without one of their mechanisms they do not.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { parseScenario } from '../../../sim/index.js'
import { checkExactly, scenarios, trials } from '../../../sim/testing/index.js'
import { describeMutants } from '../../support/mutants.js'
import { share } from '../../support/runs.js'

const CALM = {
  algorithm: 'mawo',
  loss: 0,
  reorder: 0,
  linkSpread: 0,
  speedSpread: 0,
  bandwidth: 0,
  nodeBandwidth: 0
} as const

describe('MaWo-DMB', () => {
  it('drops at most M·(T + t_u + 2·t_c) inputs at an update without faults, whatever the tree and the times', () => {
    const keys = fc.record({
      updateTime: fc.constantFrom(0, 0.5, 3),
      delay: fc.constantFrom('constant' as const, 'uniform' as const),
      topology: fc.constantFrom('path' as const, 'star' as const, 'tree' as const, 'random' as const)
    })
    const drawn = keys.chain(values => scenarios({ ...CALM, ...values }))
    const holds = fc.property(drawn, scenario => checkExactly({ scenario, faults: [] }) === undefined)
    fc.assert(holds, { numRuns: 300 })
  })
})

describe('DMB and MaWo-DMB on the nodes of ADMB', () => {
  it('use all inputs that wait at the end, although each batch takes a round', () => {
    const values = { algorithm: 'dmb-overlay', topology: 'overlay', nodes: 6, degree: 2, inputs: 76, batch: 1 }
    const times = {
      period: 0.5,
      latency: 2.95,
      journal: true,
      checkpoint: 1,
      diskTime: 0.47,
      sums: 'exact',
      checks: true
    }
    assert.equal(
      checkExactly({ scenario: parseScenario({ ...values, ...times, carry: 0 }, 'test'), faults: [] }),
      undefined
    )
  })

  for (const algorithm of ['mawo-overlay', 'dmb-overlay'] as const)
    it(`${algorithm}: only the master updates, no gradient counts twice, and none is lost, under any faults`, () => {
      fc.assert(
        fc.property(trials({ algorithm }), trial => checkExactly(trial) === undefined),
        { numRuns: share(160) }
      )
    })
})

describeMutants('master')

/**
 * MaWo-DMB drops no more inputs at an update than the paper says. DMB and MaWo-DMB on the nodes of ADMB keep its properties under
 * faults. Without one of their mechanisms they do not.
 */
import fc from 'fast-check'
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
  for (const algorithm of ['mawo-overlay', 'dmb-overlay'] as const)
    it(`${algorithm}: only the master updates, no gradient counts twice, and none is lost, under any faults`, () => {
      fc.assert(
        fc.property(trials({ algorithm }), trial => checkExactly(trial) === undefined),
        { numRuns: share(160) }
      )
    })
})

describeMutants('master')

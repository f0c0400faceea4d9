/** Momentum of updates with local steps, in simulated networks. */
import assert from 'node:assert/strict'
import { parseScenario, simulate } from '../../../sim/index.js'

const SCENARIO = { nodes: 8, topology: 'tree', inputs: 8000, batch: 256, latency: 8, carry: 64, localSteps: 16 }

function run(keys: object) {
  return simulate(parseScenario({ ...SCENARIO, rule: 'adagrad', sums: 'lattice', ...keys }, 'test'))
}

describe('simulated local steps with momentum', () => {
  it('lower the regret of a few large updates', () => {
    const [without, momentum] = [0, 0.7].map(localMomentum => run({ localMomentum, checks: false }).regret)
    assert.ok(momentum < 0.9 * without, `${momentum}, and ${without} without momentum`)
  })

  it('violate no property under faults', () => {
    const faults = { crashShare: 0.1, partitionShare: 0.1 }
    const { violations, updates } = run({ localMomentum: 0.5, inputs: 3000, batch: 64, loss: 0.05, faults })
    assert.deepEqual(violations, [])
    assert.ok(updates > 10, `${updates} updates`)
  })

  it('take few bytes with a budget, and violate no property under faults', () => {
    const keys = { sumBytes: 0.05, nodes: 16, batch: 512, dimension: 500 }
    const [all, few] = [{ ...keys, sumBytes: undefined }, keys].map(each => run({ ...each, checks: false }))
    assert.ok(few.bytes < 0.6 * all.bytes, `${few.bytes} bytes, and ${all.bytes} without a budget`)
    const faults = { crashShare: 0.1, partitionShare: 0.1 }
    const { violations, updates } = run({ ...keys, inputs: 3000, batch: 64, loss: 0.05, faults })
    assert.deepEqual(violations, [])
    assert.ok(updates > 10, `${updates} updates`)
  })

  it('need local steps', () => {
    assert.throws(
      () => run({ localSteps: undefined, localMomentum: 0.5 }),
      /momentum is for local steps: set localSteps/
    )
    assert.throws(() => run({ localSteps: undefined, sumBytes: 0.03 }), /is for local steps: set localSteps/)
    assert.throws(() => run({ sums: 'exact', sumBytes: 0.03 }), /is for integer sums: set sums=lattice/)
  })
})

/** The fuzzer finds a violation by nodes without one of the repairs that the simulator's page switches off. */
import assert from 'node:assert/strict'
import { fuzz } from '../../../sim/fuzz/fuzz.js'
import { type Repair, type RepairName, repairs } from '../../../sim/fuzz/repairs.js'
import type { Trial } from '../../../sim/testing/index.js'
import { checkExactly } from '../../../sim/testing/index.js'

const MAX_RUNS = 2000

describe('nodes without a repair', function () {
  this.timeout(300_000)

  for (const [name, repair] of Object.entries<Repair>(repairs) as [RepairName, Repair][]) {
    const { without: node, scenario, breaks } = repair
    it(`violate a property, which nodes with it keep: ${name}`, () => {
      const trials: Trial[] = []
      const { violations } = fuzz(MAX_RUNS, 2, { node, scenario, onViolation: trial => trials.push(trial) })
      assert.equal(violations.length, 1)
      const [{ property, schedule }] = violations
      assert.ok(breaks.includes(property.split(':')[0]), property)
      assert.deepEqual(trials.at(-1), schedule)
      assert.equal(checkExactly(schedule, { node }), property)
      assert.equal(checkExactly(schedule), undefined)
    })
  }
})

/** Networks whose period between sums adapts to their lines. */
import assert from 'node:assert/strict'
import { parseScenario, ScenarioError } from '../../../sim/scenario.js'
import { simulate } from '../../../sim/simulate.js'

function run(settings: object) {
  const { regret, bytes, violations } = simulate(parseScenario({ inputs: 8000, carry: 64, ...settings }, 'test'))
  assert.deepEqual(violations, [])
  return { regret, bytes }
}

describe('a period that adapts', () => {
  for (const [title, settings] of [
    ['long delays', { latency: 8, batch: 128 }],
    ['long epochs', { batch: 512 }]
  ] as const)
    it(`sends less over ${title} and learns as well`, () => {
      const [fixed, auto] = [false, true].map(autoPeriod => run({ ...settings, autoPeriod }))
      assert.ok(auto.bytes < 0.7 * fixed.bytes, `${auto.bytes} of ${fixed.bytes} bytes`)
      assert.ok(auto.regret < 1.05 * fixed.regret, `regret ${auto.regret} and ${fixed.regret}`)
    })

  it('sends each period where a batch needs it', () => {
    const [fixed, auto] = [false, true].map(autoPeriod => run({ batch: 128, autoPeriod }))
    assert.equal(auto.bytes, fixed.bytes)
  })

  it('is only for admb', () => {
    assert.throws(() => parseScenario({ autoPeriod: true, algorithm: 'dmb' }, 'test'), ScenarioError)
  })
})

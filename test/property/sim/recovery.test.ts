/** Lemma 1 and Theorem 2 hold again after faults, for drawn networks and faults. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { parseScenario, simulate } from '../../../sim/index.js'
import { checkExactly, faultSchedules, trials } from '../../../sim/testing/index.js'
import { AdmbNode } from '../../../src/admb/index.js'
import { mutantOf, removeMutants } from '../../support/mutants.js'
import { share } from '../../support/runs.js'

/** Long enough for several repairs: 400 inputs of 3 nodes take a thousand periods. */
const CALM = {
  nodes: 3,
  inputs: 400,
  interval: 4,
  period: 0.5,
  latency: 0.1,
  speedSpread: 0,
  delay: 'constant',
  linkSpread: 0,
  bandwidth: 0,
  loss: 0,
  reorder: 0
} as const

describe('after the last fault', function () {
  this.timeout(300_000)
  after(removeMutants)

  it('all nodes have the best predictor in time, and update at the pace of Theorem 2', () => {
    fc.assert(
      fc.property(trials(CALM), ({ scenario, faults }) => {
        // Sessions at one end only, and cycles, are beyond the theorems.
        const proper = faults.filter(({ kind }) => kind !== 'link' && kind !== 'unlink')
        assert.equal(checkExactly({ scenario, faults: proper }), undefined)
      }),
      { numRuns: share(60) }
    )
  })

  it('is checked: a longer wait before what was lost is repeated violates it', async () => {
    const mutant = await mutantOf('recovery', [{ point: 'MAX_WAIT', from: '64', to: '4000' }])
    // The first frames of the sessions of node 2 are lost.
    const sides = [0, 0, 1]
    const faults = [
      { time: 50, kind: 'partition', sides, oneWay: false },
      { time: 60, kind: 'crash', node: 2 },
      { time: 70, kind: 'restart', node: 2, disk: 'kept' },
      { time: 200, kind: 'heal' }
    ] as const
    const scenario = parseScenario({ ...CALM, topology: 'path', inputs: 1600, interval: 1, batch: 30 }, 'test')
    assert.deepEqual(simulate(scenario, { faults }).violations, [])
    const [violation] = mutant.simulate(scenario, { faults }).violations
    assert.match(violation, /^progress: not all nodes have \d+ updates .* \((Lemma 1|Theorem 2)\)/)
  })

  it('is checked: nodes that send no sums after a lost session violate Theorem 2', () => {
    class MuteNode extends AdmbNode {
      #isMute = false
      override disconnect(edge: number): void {
        super.disconnect(edge)
        this.#isMute = true
      }
      override tick(elapsed?: number): void {
        if (!this.#isMute) super.tick(elapsed)
      }
    }
    const faults = [
      { time: 50, kind: 'crash', node: 1 },
      { time: 60, kind: 'restart', node: 1, disk: 'kept' }
    ] as const
    const scenario = parseScenario(
      { ...CALM, topology: 'path', inputs: 1600, interval: 1, batch: 100, carry: 0 },
      'test'
    )
    const [violation] = simulate(scenario, { faults, node: options => new MuteNode(options) }).violations
    assert.match(violation, /^progress: not all nodes have \d+ updates after \d+ inputs, above \d+ \(Theorem 2\)/)
    assert.deepEqual(simulate(scenario, { faults }).violations, [])
  })

  it('all nodes of a good period have as many updates as any had before the repair', () => {
    const schedule = faultSchedules({ nodes: 5, until: 300 })
    fc.assert(
      fc.property(schedule, fc.nat(), fc.constantFrom('path', 'star', 'random'), (drawn, seed, topology) => {
        const faults = drawn.filter(({ kind }) => kind !== 'link' && kind !== 'unlink' && kind !== 'leave')
        const keys = { topology, nodes: 5, inputs: 2500, batch: 40, dimension: 2, period: 0.5, latency: 0.2, seed }
        const scenario = parseScenario({ ...keys, checks: false }, 'test')
        const updates = [0, 0, 0, 0, 0]
        const up = [true, true, true, true, true]
        let before = 0
        let checked = 0
        const last = Math.max(0, ...faults.map(({ time }) => time))
        // 65 periods, two delays, and three delays a hop and one.
        const good = last + 65 * 0.5 + 0.2 * (2 + 3 * 4 + 1)
        simulate(scenario, {
          faults,
          observer: {
            onFault: (_time, fault) => {
              if (!('node' in fault)) return
              if (['crash', 'pause'].includes(fault.kind)) up[fault.node] = false
              if (['restart', 'resume', 'join'].includes(fault.kind)) up[fault.node] = true
            },
            onPredictorChange: (_time, node, id) => {
              updates[node] = id.updates
            },
            afterEvent: time => {
              if (time <= last) before = Math.max(...updates.filter((_, node) => up[node]))
              if (time < good || up.includes(false)) return
              checked++
              assert.ok(Math.min(...updates) >= before, `${updates} after ${before} updates`)
            }
          }
        })
        // Schedules end long before the inputs.
        assert.ok(checked > 0 || up.includes(false) || good > 500)
      }),
      { numRuns: share(15) }
    )
  })
})

/** Statuses in simulated networks: exact totals after faults, and bytes that do not grow with the network. */
import assert from 'node:assert/strict'
import { parseScenario, ScenarioError } from '../../../sim/scenario.js'
import { simulate } from '../../../sim/simulate.js'

const given = {
  algorithm: 'isolated',
  degree: 4,
  latency: 50,
  heartbeat: 1000,
  period: 1000,
  interval: 10_000,
  warmup: 40_000,
  dimension: 2,
  checks: false,
  watchers: 1
}

describe('statuses in a simulated network', function () {
  this.timeout(120_000)

  it('have the totals of all nodes of an overlay after crashes', () => {
    const nodes = 24
    const faults = { crashShare: 0.1, downtime: 5000 }
    // With this seed, no node has crashed shortly before the end.
    const inputs = 30 * nodes
    const scenario = parseScenario({ ...given, topology: 'overlay', nodes, inputs, seed: 2, faults }, 'test')
    const { statuses } = simulate(scenario)
    assert.deepEqual([statuses?.peers, statuses?.rows], [nodes, nodes - 1])
    assert.ok((statuses?.bytesPerSecond.max ?? 0) < 2000)
  })

  it('have about the same size if only a sample of nodes compresses them', () => {
    const [all, sampled] = [1, 8].map(statusSample => {
      const nodes = 160
      return simulate(parseScenario({ ...given, topology: 'tree', nodes, inputs: 6 * nodes, statusSample }, 'test'))
        .statuses
    })
    assert.equal(sampled?.peers, 160)
    assert.notEqual(sampled?.bytes, all?.bytes)
    const ratio = (sampled?.bytes ?? 0) / (all?.bytes ?? 1)
    assert.ok(Math.abs(ratio - 1) < 0.2, `${ratio} times the bytes`)
  })

  it('cost the same at each node of a larger network, and are the same for the same seed', () => {
    const run = (nodes: number) =>
      simulate(parseScenario({ ...given, topology: 'tree', nodes, inputs: 4 * nodes }, 'test'))
    const [small, again, large] = [run(40), run(40), run(160)]
    assert.equal(small.traceHash, again.traceHash)
    assert.deepEqual(small.statuses, again.statuses)
    assert.equal(large.statuses?.peers, 160)
    assert.ok((large.statuses?.bytesPerSecond.mean ?? 0) < 1.2 * (small.statuses?.bytesPerSecond.mean ?? 0))
    assert.ok((large.statuses?.bytesPerSecond.max ?? 0) < 2000)
  })

  it('need sessions that keep the order', () => {
    assert.throws(() => parseScenario({ ...given, topology: 'tree', loss: 0.1 }, 'test'), ScenarioError)
  })
})

/** Thresholds for jumps do not keep correct nodes apart: a network becomes whole after any partition whose parts have enough nodes. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { type NodeFactory, parseScenario, simulate, type Trial } from '../../../sim/testing/index.js'
import { AdmbNode } from '../../../src/admb/index.js'
import { share } from '../../support/runs.js'

const NODES = 12
/** Headers that nodes keep: far fewer than the updates during the partition. */
const LINEAGE = 6

const node: NodeFactory = options => new AdmbNode({ ...options, lineage: LINEAGE })

/** Halves that are apart for most of the run. */
function trial(seed: number, topology: string): Trial {
  const scenario = parseScenario(
    {
      ...{ topology, nodes: NODES, inputs: 6000, batch: 8, dimension: 4, linkDegree: 8, carry: 16, warmup: 20 },
      ...{ signed: true, trust: { signers: 2 }, latency: 0.2, seed }
    },
    'a partition'
  )
  const sides = Array.from({ length: NODES }, (_, i) => (i < NODES / 2 ? 0 : 1))
  const faults = [{ time: 100, kind: 'partition', sides, oneWay: false } as const, { time: 400, kind: 'heal' } as const]
  return { scenario, faults }
}

describe('thresholds for jumps', function () {
  this.timeout(120_000)

  for (const topology of ['star', 'path', 'tree'])
    it(`let a ${topology} become whole after a long partition`, () => {
      const property = fc.property(fc.nat(), seed => {
        const { scenario, faults } = trial(seed, topology)
        const { violations, updates } = simulate(scenario, { faults, node, quiesce: true })
        assert.deepEqual(violations, [])
        assert.ok(updates > 10 * LINEAGE)
      })
      fc.assert(property, { numRuns: share(4), seed: 1 })
    })
})

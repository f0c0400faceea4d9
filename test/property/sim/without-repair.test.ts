/**
 * The fuzzer finds a violation by nodes without one of the repairs, which real networks need. Repairs inside of AdmbNode are
 * disabled by `repairs.test.ts` in the compiled code.
 */
import assert from 'node:assert/strict'
import { UNLIMITED_CARRY } from '../../../sim/checkers/exact.js'
import { fuzz } from '../../../sim/fuzz/fuzz.js'
import type { Scenario } from '../../../sim/scenario.js'
import type { Trial } from '../../../sim/testing/index.js'
import { checkExactly } from '../../../sim/testing/index.js'
import type { NodeFactory } from '../../../sim/world.js'
import { AdmbNode, type AdmbOptions } from '../../../src/admb/index.js'

interface Repair {
  /** Nodes without it. */
  readonly without: NodeFactory
  /** Keys of the scenarios in which it matters. */
  readonly scenario: Partial<Scenario>
  /** Properties, one of which is then violated. */
  readonly breaks: readonly string[]
}

/** All sessions of an edge have one number, so that messages of an earlier one count. */
class WithoutSessions extends AdmbNode {
  override connect(edge: number, _session: number, label: string): void {
    super.connect(edge, 1, label)
  }
}

/** A node that restarts does not know the segments of its earlier runs. */
class WithoutJournal extends AdmbNode {
  override recover(): void {}
}

const repairs: Readonly<Record<string, Repair>> = {
  /** Of two predictors with as many updates, all nodes prefer the same one. Without it, nodes can exchange predictors for ever. */
  precedence: {
    without: (options: AdmbOptions) => new AdmbNode({ ...options, precedence: 'sender', carry: 0 }),
    scenario: { carry: 0 },
    breaks: ['monotone', 'quiescence', 'progress', 'edge monotone']
  },
  /** A node that restarts is another contributor. Without it, neighbours take new gradients for old ones. */
  incarnations: {
    without: (options: AdmbOptions) => new AdmbNode({ ...options, incarnation: 1, nonce: 0 }),
    scenario: {},
    breaks: ['identity', 'purity', 'acceptance', 'no echo', 'size', 'conservation', 'quiescence']
  },
  /** After a link was closed and opened again, messages of the earlier session are ignored. Without it, a late one replaces a newer one. */
  sessions: {
    without: (options: AdmbOptions) => new WithoutSessions(options),
    scenario: {},
    breaks: ['acceptance', 'idempotence', 'purity', 'edge monotone', 'no echo', 'quiescence']
  },
  /** A node that restarts knows which of its inputs an update may have used. Without it, it learns some of them twice, or never. */
  journal: {
    without: (options: AdmbOptions) => new WithoutJournal(options),
    scenario: { journal: true, carry: UNLIMITED_CARRY },
    breaks: ['completeness', 'purity', 'quiescence']
  }
}

const MAX_RUNS = 2000

describe('nodes without a repair', function () {
  this.timeout(300_000)

  for (const [name, repair] of Object.entries<Repair>(repairs)) {
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

/**
 * ADMB without one of its repairs, which real networks need: each factory creates nodes that lack it, and the fuzzer then finds
 * a violation. Repairs inside of AdmbNode are disabled by `test/property/sim/repairs.test.ts` in the compiled code.
 */
import { AdmbNode, type AdmbOptions } from '../../src/admb/index.js'
import { UNLIMITED_CARRY } from '../checkers/exact.js'
import type { Scenario } from '../scenario.js'
import type { NodeFactory } from '../world.js'

export interface Repair {
  readonly title: string
  /** What it is, and what happens without it; one sentence each. */
  readonly help: string
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

export const repairs = {
  precedence: {
    title: 'Precedence by origin',
    help: 'Of two predictors with as many updates, all nodes prefer the same one. Without it, the sender of a message decides, and nodes can exchange predictors for ever.',
    without: (options: AdmbOptions) => new AdmbNode({ ...options, precedence: 'sender', carry: 0 }),
    scenario: { carry: 0 },
    breaks: ['monotone', 'quiescence', 'progress', 'edge monotone']
  },
  incarnations: {
    title: 'Incarnations',
    help: 'A node that restarts is another contributor. Without them, its neighbours take new gradients for old ones, and different predictors have one name.',
    without: (options: AdmbOptions) => new AdmbNode({ ...options, incarnation: 1, nonce: 0 }),
    scenario: {},
    breaks: ['identity', 'purity', 'acceptance', 'no echo', 'size', 'conservation', 'quiescence']
  },
  sessions: {
    title: 'Sessions of an edge',
    help: 'After a link was closed and opened again, messages of the earlier session are ignored. Without them, a late message replaces a newer one.',
    without: (options: AdmbOptions) => new WithoutSessions(options),
    scenario: {},
    breaks: ['acceptance', 'idempotence', 'purity', 'edge monotone', 'no echo', 'quiescence']
  },
  journal: {
    title: 'The journal',
    help: 'A node that restarts knows which of its inputs an update may have used. Without it, it learns some of them twice, or never.',
    without: (options: AdmbOptions) => new WithoutJournal(options),
    scenario: { journal: true, carry: UNLIMITED_CARRY },
    breaks: ['completeness', 'purity', 'quiescence']
  }
} as const satisfies Readonly<Record<string, Repair>>

export type RepairName = keyof typeof repairs

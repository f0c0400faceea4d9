/**
 * Every repair that makes ADMB true on real networks, switched off: the fuzzer must find what goes wrong then. A checker that
 * cannot fail proves nothing, and a repair that nobody misses is not needed.
 */
import assert from 'node:assert/strict'
import { type Change, fuzzerOf, removeMutants } from '../../support/mutants.js'

const MOST_RUNS = 5000

interface Mutant {
  readonly without: string
  readonly changes: readonly Change[]
  /** Properties that may be seen to break first. */
  readonly breaks: readonly string[]
}

const REPLAY: Change = {
  file: 'src/admb/holding.js',
  from: 'nextPredictor(parent, batch, name, this.#recipe)',
  to: 'nextPredictor(parent, { sum: batch.sum, count: batch.count + 1 }, name, this.#recipe)'
}

const MUTANTS: readonly Mutant[] = [
  {
    without: 'precedence by origin (the sender’s index decides)',
    changes: [
      {
        file: 'src/admb/name.js',
        from: "if (precedence === 'origin') return compareNames(a, b) > 0;",
        to: ''
      }
    ],
    breaks: ['monotone', 'quiescence', 'progress']
  },
  {
    without: 'identity by name (equally many updates are the same predictor)',
    changes: [
      {
        file: 'src/admb/name.js',
        from: 'if (a.origin !== b.origin) return a.origin < b.origin ? 1 : -1; return a.incarnation - b.incarnation;',
        to: 'return 0;'
      }
    ],
    breaks: ['purity']
  },
  {
    without: 'replay of the very step that its maker took',
    changes: [REPLAY],
    breaks: ['acceptance']
  },
  {
    without: 'the digest of what a step is replayed to',
    changes: [
      REPLAY,
      { file: 'src/admb/holding.js', from: 'if (predictor.name.digest !== name.digest)', to: 'if (false)' }
    ],
    breaks: ['identity']
  },
  {
    without: 'incarnations (a restarted node is who it was)',
    changes: [{ file: 'sim/algorithms/admb.js', from: 'site.incarnation++;', to: ';' }],
    breaks: ['identity', 'purity', 'acceptance', 'no echo', 'size']
  },
  {
    without: 'disjoint coverages',
    changes: [{ file: 'src/admb/sums.js', from: '(other !== undefined && other !== edge)', to: 'false' }],
    breaks: ['purity', 'acceptance']
  },
  {
    without: 'the look for own gradients in a sum',
    changes: [{ file: 'src/admb/sums.js', from: 'segmentsOf(held.coverage, this.#self) > 0', to: 'false' }],
    breaks: ['no echo']
  },
  {
    without: 'edge sessions',
    changes: [{ file: 'src/admb/edge.js', from: 'session === this.session && ', to: '' }],
    breaks: ['acceptance', 'idempotence', 'purity', 'edge monotone', 'no echo', 'quiescence']
  },
  {
    without: 'sequence numbers',
    changes: [{ file: 'src/admb/edge.js', from: ' && sequence > this.received', to: '' }],
    breaks: ['idempotence']
  },
  {
    without: 'forwarding at once (predictors wait for the next tick)',
    changes: [
      { file: 'src/admb/node.js', from: ' || this.#outbox.mustPush(edge)', to: '' },
      {
        file: 'src/admb/node.js',
        from: 'edge.ackDue = edge.owesAck;',
        to: 'edge.ackDue = edge.owesAck || this.#outbox.mustPush(edge);'
      }
    ],
    breaks: ['progress']
  },
  {
    without: 'the prefix of segments that a lineage has used',
    changes: [{ file: 'src/admb/ledger.js', from: 'i < prefix', to: 'i < 0' }],
    breaks: ['purity', 'conservation']
  }
]

describe('the fuzzer', function () {
  this.timeout(300_000)
  after(removeMutants)

  MUTANTS.forEach(({ without, changes, breaks }, number) => {
    it(`misses ${without}`, async () => {
      const { fuzz } = await fuzzerOf(`${number}`, changes)
      const { runs, violations } = fuzz(MOST_RUNS, 1, { shrink: false })
      assert.equal(violations.length, 1, `nothing found in ${runs} runs`)
      const [{ property }] = violations
      console.log(`        after ${runs} runs: ${property}`)
      assert.ok(breaks.includes(property.split(':')[0]), property)
    })
  })
})

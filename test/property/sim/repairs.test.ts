/**
 * Every repair that makes ADMB true on real networks, switched off: the fuzzer must find what goes wrong then. A checker that
 * cannot fail proves nothing, and a repair that nobody misses is not needed.
 */
import assert from 'node:assert/strict'
import { type Change, mutantOf, removeMutants } from '../../support/mutants.js'

const MOST_RUNS = 5000

interface Mutant {
  readonly without: string
  readonly changes: readonly Change[]
  /** Properties one of which must be seen to break. */
  readonly breaks: readonly string[]
}

const REPLAY: Change = {
  file: 'src/admb/current-predictor.js',
  from: 'nextPredictor(parent, batch, id, this.#recipe)',
  to: 'nextPredictor(parent, { sum: batch.sum, count: batch.count + 1 }, id, this.#recipe)'
}

const REPAIRS: readonly Mutant[] = [
  {
    without: 'precedence by origin (the sender’s index decides)',
    changes: [
      {
        file: 'src/admb/predictor-id.js',
        from: "if (precedence === 'origin') return compareIds(a, b) > 0;",
        to: ''
      }
    ],
    breaks: ['monotone', 'quiescence', 'progress']
  },
  {
    without: 'identity by name (equally many updates are the same predictor)',
    changes: [
      {
        file: 'src/admb/predictor-id.js',
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
      { file: 'src/admb/current-predictor.js', from: 'if (predictor.id.digest !== id.digest)', to: 'if (false)' }
    ],
    breaks: ['identity']
  },
  {
    without: 'incarnations (a restarted node is who it was)',
    changes: [{ file: 'sim/algorithms/admb.js', from: 'site.incarnation++;', to: 'site.incarnation += 0;' }],
    breaks: ['identity', 'purity', 'acceptance', 'no echo', 'size', 'conservation']
  },
  {
    without: 'disjoint coverages',
    changes: [
      { file: 'src/admb/coverage.js', from: '!covered(b).some(contributor => coveredByA.has(contributor))', to: 'true' }
    ],
    breaks: ['purity', 'acceptance']
  },
  {
    without: 'the look for own gradients in a sum',
    changes: [
      {
        file: 'src/admb/neighbour-sums.js',
        from: '!this.#areDisjoint && segmentsOf(neighbourSum.coverage, this.#self) > 0',
        to: 'false'
      }
    ],
    breaks: ['no echo', 'purity']
  },
  {
    without: 'edge sessions',
    changes: [{ file: 'src/admb/edge.js', from: 'session === this.session &&', to: '' }],
    breaks: ['acceptance', 'idempotence', 'purity', 'edge monotone', 'no echo', 'quiescence']
  },
  {
    without: 'sequence numbers',
    changes: [{ file: 'src/admb/edge.js', from: '&& sequence > this.received', to: '' }],
    breaks: ['idempotence']
  },
  {
    without: 'forwarding at once (predictors wait for the next tick)',
    changes: [
      { file: 'src/admb/frame-sender.js', from: '|| this.#outbox.mustPush(edge)', to: '' },
      {
        file: 'src/admb/node.js',
        from: 'edge.ackDue = edge.ackPending;',
        to: 'edge.ackDue = edge.ackPending || this.#outbox.mustPush(edge);'
      }
    ],
    breaks: ['progress']
  },
  {
    without: 'the prefix of segments that a lineage has used',
    changes: [{ file: 'src/admb/ledger.js', from: 'i < used', to: 'i < 0' }],
    breaks: ['purity', 'conservation']
  },
  {
    without: 'transfers (parts of one frame are taken for those of another)',
    changes: [{ file: 'src/admb/fragments.js', from: 'if (transfer > this.#transfer)', to: 'if (false)' }],
    breaks: ['acceptance', 'purity']
  },
  {
    without: 'the wait of a frame for its parts',
    changes: [{ file: 'src/admb/edge.js', from: 'this.deferred = frame;', to: '' }],
    breaks: ['quiescence', 'idempotence']
  }
]

/** Defects for the properties that no repair above is for. */
const DEFECTS: readonly Mutant[] = [
  {
    without: 'a second greeting where the first was lost',
    changes: [{ file: 'src/admb/outbox.js', from: 'if (edge.announceBackoff.due(period))', to: 'if (false)' }],
    breaks: ['quiescence']
  },
  {
    without: 'the last gradient of a batch',
    changes: [
      {
        file: 'src/admb/node.js',
        from: 'this.gradients < this.#options.batch',
        to: 'this.gradients < this.#options.batch - 1'
      }
    ],
    breaks: ['size']
  },
  {
    without: 'the batch that it states',
    changes: [
      {
        file: 'src/admb/node.js',
        from: 'this.#current.next(batch,',
        to: 'this.#current.next({ sum: batch.sum, count: batch.count + 1 },'
      }
    ],
    breaks: ['lineage']
  },
  {
    without: 'some of the sums that it should pass on',
    changes: [
      {
        file: 'src/admb/neighbour-sums.js',
        from: 'if (this.#areDisjoint) return held;',
        to: 'if (this.#areDisjoint) { this.calls = (this.calls ?? 0) + 1; return except && this.calls % 5 === 0 ? [] : held; }'
      }
    ],
    breaks: ['quiescence', 'edge monotone']
  }
]

describe('the fuzzer', function () {
  this.timeout(300_000)
  after(removeMutants)

  const all = [...REPAIRS, ...DEFECTS]
  all.forEach(({ without, changes, breaks }, number) => {
    it(`misses ${without}`, async () => {
      const { fuzz } = await mutantOf(`${number}`, changes)
      const seen: string[] = []
      let total = 0
      // Another property may break first: then the search goes on with another seed.
      for (let seed = 1; total < MOST_RUNS; seed++) {
        const { runs, violations } = fuzz(MOST_RUNS - total, seed, { shrink: false })
        total += runs
        seen.push(...violations.map(({ property }) => property))
        if (breaks.includes(seen.at(-1)?.split(':')[0] ?? '')) {
          console.log(`        after ${total} runs: ${seen.at(-1)}`)
          return
        }
      }
      assert.fail(seen.length === 0 ? `nothing found in ${total} runs` : `found only: ${seen.slice(0, 5).join('; ')}`)
    })
  })
})

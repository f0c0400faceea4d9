/**
 * Mutation test: each extension that ADMB needs on real networks is disabled in turn, and the fuzzer must find a violation. This
 * shows that the checkers can fail, and that every extension is needed.
 */
import assert from 'node:assert/strict'
import type { Scenario } from '../../../sim/index.js'
import { type CodeChange, mutantOf, removeMutants } from '../../support/mutants.js'

const MAX_RUNS = 5000

interface Mutant {
  readonly without: string
  readonly changes: readonly CodeChange[]
  /** Properties, one of which must be violated. */
  readonly breaks: readonly string[]
  /** Keys of every trial, for what random ones show too rarely. @default none */
  readonly scenario?: Partial<Scenario>
}

const REPLAY: CodeChange = {
  file: 'src/admb/current-predictor.js',
  from: 'replayed(parent, sum, header, this.#recipe)',
  to: 'replayed(parent, sum, { ...header, count: header.count + 1 }, this.#recipe)'
}

const EXTENSIONS: readonly Mutant[] = [
  {
    without: 'the bound of own sums (a node sends more than neighbours accept)',
    changes: [{ file: 'src/admb/influence.js', from: 'if (norm <= most) return block;', to: 'return block;' }],
    breaks: ['acceptance']
  },
  {
    without: 'the bound of sums of others',
    changes: [
      { file: 'src/admb/influence.js', from: 'if (norm <= most * (1 + TOLERANCE)) continue;', to: 'continue;' }
    ],
    breaks: ['influence'],
    scenario: { bounded: true }
  },
  {
    without: 'precedence by origin (the sender decides instead)',
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
    without: 'identity by predictor id (equally many updates are the same predictor)',
    changes: [
      {
        file: 'src/admb/predictor-id.js',
        from: 'if (a.origin !== b.origin) return a.origin < b.origin ? 1 : -1;',
        to: 'return 0;'
      }
    ],
    breaks: ['purity']
  },
  {
    without: 'exact replay of a step',
    changes: [REPLAY],
    breaks: ['acceptance']
  },
  {
    without: 'the digest check of replayed steps',
    changes: [
      REPLAY,
      { file: 'src/admb/current-predictor.js', from: 'if (predictor.id.digest !== id.digest)', to: 'if (false)' }
    ],
    breaks: ['identity']
  },
  {
    without: 'incarnations (a restarted node keeps its identity)',
    changes: [
      { file: 'sim/algorithms/admb.js', from: 'state.nonce++;', to: 'state.nonce += 0;' },
      { file: 'sim/algorithms/admb.js', from: 'state.incarnation++;', to: 'state.incarnation += 0;' }
    ],
    breaks: ['identity', 'purity', 'acceptance', 'no echo', 'size', 'conservation']
  },
  {
    without: 'nonces (a restored backup uses its run numbers again)',
    changes: [{ file: 'sim/algorithms/admb.js', from: 'state.nonce++;', to: 'state.nonce += 0;' }],
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
    without: 'the check for own gradients in a sum',
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
    without: 'immediate forwarding (predictors wait for the next tick)',
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
    without: 'the prefix of segments used by a lineage',
    changes: [
      { file: 'src/admb/past-epochs.js', from: 'slice(0, segmentsOf(coverage, contributor))', to: 'slice(0, 0)' }
    ],
    breaks: ['purity', 'conservation']
  },
  {
    without: 'the journal (a restarted node forgets its segments)',
    changes: [{ file: 'sim/algorithms/admb.js', from: 'if (journal.length > 0) state.node.recover(journal);', to: '' }],
    breaks: ['completeness']
  },
  {
    without: 'the wait for inputs in doubt',
    changes: [{ file: 'src/admb/segments.js', from: 'return segments.has(segment) ||', to: 'return false &&' }],
    breaks: ['purity', 'size'],
    scenario: { journal: true, nodes: 3, batch: 6, carry: 1_000_000 }
  },
  {
    without: 'the link of a segment to the earlier one with the same inputs',
    changes: [{ file: 'src/admb/segments.js', from: 'segment.used || (segment.of', to: 'segment.used || (undefined' }],
    breaks: ['purity', 'completeness']
  },
  {
    without: 'the record of a segment before its frame leaves',
    changes: [
      {
        file: 'sim/algorithms/admb.js',
        from: 'disk.append([...records, ...node.takeJournal()], inputs.size);',
        to: 'disk.append(records.slice(0, -1), inputs.size); node.takeJournal();'
      }
    ],
    breaks: ['purity', 'completeness', 'error']
  },
  {
    without: 'transfer numbers (fragments of different frames are mixed)',
    changes: [{ file: 'src/admb/fragments.js', from: 'if (transfer > this.#transfer)', to: 'if (false)' }],
    breaks: ['acceptance', 'purity']
  },
  {
    without: 'chains of steps (only holders of the parent receive steps)',
    changes: [
      {
        file: 'src/admb/current-predictor.js',
        from: 'count > this.#steps.length ||',
        to: 'count > Math.min(1, this.#steps.length) ||'
      }
    ],
    breaks: ['economy']
  },
  {
    without: 'the replacement of steps by those of another branch',
    changes: [
      {
        file: 'src/admb/current-predictor.js',
        from: 'const older = base ? this.#stepsBefore(base, before) : [];',
        to: 'const older = this.#steps;'
      }
    ],
    breaks: ['acceptance', 'identity']
  },
  {
    without: 'the residual (what rounding takes from a gradient is lost)',
    changes: [{ file: 'src/admb/rounding.js', from: 'residual[i] = rest;', to: 'residual[i] = 0;' }],
    breaks: ['books']
  },
  {
    without: 'the correction for segments that were rounded anew for a rival',
    changes: [{ file: 'src/admb/rounding.js', from: 'residual[i] += lost;', to: 'return;' }],
    breaks: ['books']
  },
  {
    without: 'the grid of the adopted predictor (gradients are rounded to the old one)',
    changes: [{ file: 'src/admb/ledger.js', from: 'this.#grid = grid;\n        const needed', to: 'const needed' }],
    breaks: ['size', 'purity', 'acceptance', 'lineage', 'books']
  },
  {
    without: 'sums of any size (a relay saturates)',
    changes: [
      {
        file: 'src/base/support.js',
        from: 'i++)\n            block[i] += addend[i];',
        to: 'i++) block[i] = Math.min(7, block[i] + addend[i]);'
      }
    ],
    breaks: ['size', 'purity', 'books']
  },
  {
    without: 'the wait of a frame for its fragments',
    changes: [{ file: 'src/admb/edge.js', from: 'this.deferred = frame;', to: '' }],
    breaks: ['quiescence', 'idempotence']
  }
]

/** Defects that violate the remaining properties. */
const DEFECTS: readonly Mutant[] = [
  {
    without: 'the grace after a stall',
    changes: [{ file: 'src/overlay/node.js', from: 'this.#state.postpone(ms);', to: '' }],
    breaks: ['overlay']
  },
  {
    without: 'bytes as evidence that a neighbour is alive',
    changes: [
      {
        file: 'src/overlay/node.js',
        from: 'neighbour.lastReceived = Math.max(neighbour.lastReceived, now);',
        to: ''
      }
    ],
    breaks: ['overlay']
  },
  {
    without: 'the return after a hang',
    changes: [{ file: 'src/overlay/node.js', from: 'this.#state.begin(now); this.#advance(now);', to: '' }],
    breaks: ['overlay', 'quiescence']
  },
  {
    without: 'the contributors of its neighbours among those that it keeps',
    changes: [{ file: 'src/admb/neighbour-sums.js', from: 'encoder.mark(live); decoder.mark(live);', to: '' }],
    breaks: ['acceptance', 'purity', 'no echo', 'quiescence', 'size', 'idempotence', 'conservation', 'storable']
  },
  {
    without: 'the contributors of its lineage among those that it keeps',
    changes: [
      {
        file: 'src/admb/current-predictor.js',
        from: 'this.#headers.mark(live);',
        to: ''
      }
    ],
    breaks: ['acceptance', 'purity', 'no echo', 'quiescence', 'size', 'idempotence', 'conservation', 'storable']
  },
  {
    without: 'the release of vectors that cannot be carried over',
    changes: [
      {
        file: 'src/admb/ledger.js',
        from: 'if (!isExcess && !isExpired(segment, period, this.#carry)) break;',
        to: 'break;'
      }
    ],
    breaks: ['memory']
  },
  {
    without: 'a limit of the steps that it keeps',
    changes: [
      {
        file: 'src/admb/current-predictor.js',
        from: 'keepChain([...steps, ...older], maximumChainBytes(this.#shapes)).slice(0, lineage.length)',
        to: '[...steps, ...older]'
      }
    ],
    breaks: ['memory']
  },
  {
    without: 'repeated announcements',
    changes: [{ file: 'src/admb/outbox.js', from: 'if (edge.announceBackoff.due(period))', to: 'if (false)' }],
    breaks: ['quiescence']
  },
  {
    without: 'the last gradient of a batch',
    changes: [
      {
        file: 'src/admb/node.js',
        from: 'this.gradients < this.needed',
        to: 'this.gradients < this.needed - 1'
      }
    ],
    breaks: ['size']
  },
  {
    without: 'the b of its predictor (that of the first one is used)',
    changes: [
      {
        file: 'src/admb/node.js',
        from: 'batchOf(this.#options.batch, this.predictor)',
        to: 'batchOf(this.#options.batch, this.#options.initial)'
      }
    ],
    breaks: ['size']
  },
  {
    without: 'a correct count of unshared gradients',
    changes: [
      { file: 'src/learner/adaptive-batch.js', from: 'lastOf(sum)[0] += count', to: 'lastOf(sum)[0] += count + 1' }
    ],
    breaks: ['batch choice']
  },
  {
    without: 'a bound on the gradients that wait for an announced predictor',
    changes: [{ file: 'src/admb/node.js', from: 'WAIT_BATCHES * this.batch', to: 'Infinity' }],
    breaks: ['size']
  },
  {
    without: 'sums after a predictor has arrived',
    changes: [
      {
        file: 'src/admb/outbox.js',
        from: 'return this.isBehind(edge) && push.sequence > acknowledged && ',
        to: 'return '
      }
    ],
    breaks: ['waiting']
  },
  {
    without: 'the predictor that it announces',
    changes: [
      {
        file: 'src/admb/announcements.js',
        from: 'const best = this.expected ?? this.#current.predictor.id;',
        to: 'const held = this.expected ?? this.#current.predictor.id; const best = { ...held, updates: held.updates + 1 };'
      }
    ],
    breaks: ['waiting']
  },
  {
    without: 'the batch that it states',
    changes: [
      {
        file: 'src/admb/updater.js',
        from: 'current.next(batch,',
        to: 'current.next({ sum: batch.sum, count: batch.count + 1 },'
      }
    ],
    breaks: ['lineage']
  },
  {
    without: 'some of the sums that it must forward',
    changes: [
      {
        file: 'src/admb/neighbour-sums.js',
        from: 'if (this.#areDisjoint && this.#areSmall) return held;',
        to: 'if (this.#areDisjoint) { this.calls = (this.calls ?? 0) + 1; return except && this.calls % 5 === 0 ? [] : held; }'
      }
    ],
    breaks: ['quiescence', 'edge monotone']
  }
]

const LIMITS: readonly Mutant[] = [
  {
    without: 'a limit of the gradients of a segment',
    changes: [{ file: 'src/admb/limits.js', from: 'if (count > most * segments)', to: 'if (false)' }],
    breaks: ['size']
  },
  {
    without: 'a limit of the gradients of all neighbours together',
    changes: [
      {
        file: 'src/admb/neighbour-sums.js',
        from: 'return gradients <= MAX_SHARE && contributors <= FRAME_LIMITS.contributors;',
        to: 'return true;'
      }
    ],
    breaks: ['storable']
  },
  {
    without: 'a gate that is obeyed',
    changes: [
      {
        file: 'src/admb/node.js',
        from: "this.#effects.push({ kind: 'rejected', predictor, from }); return false;",
        to: "this.#effects.push({ kind: 'rejected', predictor, from }); return true;"
      }
    ],
    breaks: ['gate']
  },
  {
    without: 'verification of signatures',
    changes: [
      {
        file: 'src/admb/authenticity.js',
        from: 'if (!signer.verify(id.origin, signedBytes(statement), signature))',
        to: 'if (false)'
      }
    ],
    breaks: ['authentic']
  },
  {
    without: 'attribution to the maker (the neighbour that passes on a second header is blamed)',
    changes: [
      {
        file: 'src/admb/authenticity.js',
        from: 'else if (!isSame)',
        to: 'else if (!isSame) throw new FrameError("a second header"); else if (false)'
      }
    ],
    breaks: ['acceptance']
  },
  {
    without: 'verification of proofs',
    changes: [
      {
        file: 'src/admb/equivocation.js',
        from: 'if (areEqual(first.rest, second.rest) || !isValid(first) || !isValid(second))',
        to: 'if (false)'
      }
    ],
    breaks: ['attribution']
  },
  {
    without: 'an end of learning at the maximum number of updates',
    changes: [
      { file: 'src/admb/node.js', from: 'return this.predictor.id.updates >= FRAME_LIMITS.updates', to: 'return false' }
    ],
    breaks: ['storable']
  },
  {
    without: 'a check of frames that leaves the state as it is (the id of a refused frame counts)',
    changes: [
      {
        file: 'src/admb/frame-receiver.js',
        from: 'if (frame.sum?.coverage) checkCount(frame.sum.count, frame.sum.coverage, maxBatch);',
        to: 'if (frame.sum?.coverage) { this.#storeSum(edge, frame.sequence, frame.sum); checkCount(frame.sum.count, frame.sum.coverage, maxBatch); }'
      }
    ],
    breaks: ['size']
  }
]

describe('the fuzzer', function () {
  this.timeout(300_000)
  after(removeMutants)

  const all = [...EXTENSIONS, ...DEFECTS, ...LIMITS]
  all.forEach(({ without, changes, breaks, scenario }, number) => {
    it(`finds a violation without ${without}`, async () => {
      const { fuzz } = await mutantOf(`${number}`, changes)
      const found: string[] = []
      let total = 0
      // If another property is violated first, the search continues with another seed.
      for (let seed = 1; total < MAX_RUNS; seed++) {
        const { runs, violations } = fuzz(MAX_RUNS - total, seed, { scenario, shrink: false })
        total += runs
        found.push(...violations.map(({ property }) => property))
        if (breaks.includes(found.at(-1)?.split(':')[0] ?? '')) {
          console.log(`        after ${total} runs: ${found.at(-1)}`)
          return
        }
      }
      assert.fail(found.length === 0 ? `no violation in ${total} runs` : `found only: ${found.slice(0, 5).join('; ')}`)
    })
  })
})

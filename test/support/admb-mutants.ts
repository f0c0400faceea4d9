/** Mutants of ADMB: each lacks an extension that real networks need. */
import { type CodeChange, hostile, type Mutant } from './mutants.js'

const REPLAY: CodeChange = {
  file: 'src/admb/core/current-predictor.js',
  from: 'replayed(parent, sum, header, this.#recipe)',
  to: 'replayed(parent, sum, { ...header, count: header.count + 1 }, this.#recipe)'
}

export const extensions: readonly Mutant[] = [
  {
    without: 'the bound of own sums (a node sends more than neighbours accept)',
    seed: 33,
    changes: [{ file: 'src/admb/trust/influence.js', from: 'if (norm <= most) return block;', to: 'return block;' }],
    breaks: ['acceptance']
  },
  {
    without: 'the bound of sums of others',
    changes: [
      { file: 'src/admb/trust/influence.js', from: 'if (norm <= most * (1 + TOLERANCE)) continue;', to: 'continue;' }
    ],
    breaks: ['influence'],
    scenario: { trust: { bounded: true }, adversaries: hostile('unbounded') }
  },
  {
    without: 'a rounding of predictors that is the same at all nodes',
    changes: [
      {
        file: 'src/numeric/numbers.js',
        from: 'Math.imul(updates + 1, 0x9e3779b1)',
        to: '(Math.random() * 2 ** 32) | 0'
      }
    ],
    breaks: ['acceptance', 'lineage'],
    scenario: { trust: { bounded: true }, sums: 'lattice' }
  },
  {
    without: 'the rounding of averages',
    changes: [
      {
        file: 'src/admb/state/advance.js',
        from: 'roundEach(average, before.average, rounded.average, updates);',
        to: ''
      }
    ],
    breaks: ['rounded'],
    scenario: { trust: { bounded: true }, sums: 'lattice' }
  },
  {
    without: 'the frame to which an id refers (the predictor of the last one is meant)',
    isUnspecified: true,
    changes: [
      {
        file: 'src/admb/core/edge.js',
        from: 'this.#sentIds[this.#lastSentBefore(sequence)]?.id',
        to: 'this.#sentIds.at(-1)?.id'
      }
    ],
    breaks: ['acceptance', 'edge monotone', 'idempotence', 'purity', 'identity']
  },
  {
    without: 'the noise of own sums',
    changes: [{ file: 'src/admb/core/ledger.js', from: 'this.#noise?.(this.#openSum);', to: '' }],
    breaks: ['noise']
  },
  {
    without: 'precedence by origin (the sender decides instead)',
    isUnspecified: true,
    changes: [
      {
        file: 'src/admb/state/predictor-id.js',
        from: "if (precedence === 'origin') return compareIds(a, b) > 0;",
        to: ''
      }
    ],
    breaks: ['monotone', 'quiescence', 'progress']
  },
  {
    without: 'identity by predictor id (equally many updates are the same predictor)',
    isUnspecified: true,
    changes: [
      {
        file: 'src/admb/state/predictor-id.js',
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
    isUnspecified: true,
    changes: [
      REPLAY,
      { file: 'src/admb/core/current-predictor.js', from: 'if (predictor.id.digest !== id.digest)', to: 'if (false)' }
    ],
    breaks: ['identity']
  },
  {
    without: 'incarnations (a restarted node keeps its identity)',
    isUnspecified: true,
    changes: [
      { file: 'sim/algorithms/admb.js', from: 'state.nonce++;', to: 'state.nonce += 0;' },
      { file: 'sim/algorithms/admb.js', from: 'state.incarnation++;', to: 'state.incarnation += 0;' }
    ],
    breaks: ['identity', 'purity', 'acceptance', 'no echo', 'size', 'conservation']
  },
  {
    without: 'nonces (a restored backup uses its run numbers again)',
    isUnspecified: true,
    changes: [{ file: 'sim/algorithms/admb.js', from: 'state.nonce++;', to: 'state.nonce += 0;' }],
    breaks: ['identity', 'purity', 'acceptance', 'no echo', 'size', 'conservation']
  },
  {
    without: 'disjoint coverages',
    isUnspecified: true,
    seed: 28,
    changes: [
      {
        file: 'src/admb/state/coverage.js',
        from: '!covered(b).some(contributor => coveredByA.has(originOf(contributor)))',
        to: 'true'
      }
    ],
    breaks: ['purity', 'acceptance']
  },
  {
    without: 'the check for own gradients in a sum',
    isUnspecified: true,
    changes: [
      {
        file: 'src/admb/core/neighbour-sums.js',
        from: '!this.#areDisjoint && covered(neighbourSum.coverage).some(one => this.#originOf(one) === this.#self)',
        to: 'false'
      }
    ],
    breaks: ['no echo', 'purity']
  },
  {
    without: 'edge sessions',
    isUnspecified: true,
    changes: [{ file: 'src/admb/core/edge.js', from: 'session === this.session &&', to: '' }],
    breaks: ['acceptance', 'idempotence', 'purity', 'edge monotone', 'no echo', 'quiescence']
  },
  {
    without: 'sequence numbers',
    isUnspecified: true,
    changes: [{ file: 'src/admb/core/edge.js', from: '&& sequence > this.#received', to: '' }],
    breaks: ['idempotence']
  },
  {
    without: 'immediate forwarding (predictors wait for the next tick)',
    seed: 23,
    changes: [
      { file: 'src/admb/core/frame-sender.js', from: '|| this.#push.mustPush(edge)', to: '' },
      {
        file: 'src/admb/core/node.js',
        from: 'edge.due.acknowledgement = edge.due.isContentUnacknowledged;',
        to: 'edge.due.acknowledgement = edge.due.isContentUnacknowledged || this.#push.mustPush(edge);'
      }
    ],
    breaks: ['progress']
  },
  {
    without: 'batches below b at the end (a neighbour refuses them)',
    changes: [
      {
        file: 'src/admb/core/current-predictor.js',
        from: 'this.trust?.checkBatch(parent, { ...header, sum });',
        to: "if (header.count < 2) throw new FrameError('too few');"
      }
    ],
    breaks: ['acceptance']
  },
  {
    without: 'the gradients that are left at the end',
    changes: [{ file: 'src/admb/core/node.js', from: 'this.#updateIfFull(1);', to: 'this.#updateIfFull();' }],
    breaks: ['remainder']
  },
  {
    without: 'the prefix of segments used by a lineage',
    isUnspecified: true,
    changes: [
      {
        file: 'src/admb/core/past-epochs.js',
        from: 'Math.min(segments.length, segmentsOf(coverage, contributor))',
        to: '0'
      }
    ],
    breaks: ['purity', 'conservation']
  },
  {
    without: 'the gradients that earlier batches of the lineage have used, in the account',
    changes: [
      {
        file: 'src/admb/core/past-epochs.js',
        from: 'on.find(({ contributor }) => contributor === this.#run)?.used ?? 0',
        to: '0'
      }
    ],
    breaks: ['accounts']
  },
  {
    without:
      'epochs that are older than carry-over (a lineage that left the current one earlier counts as having used all)',
    isUnspecified: true,
    changes: [
      {
        file: 'src/admb/core/past-epochs.js',
        from: 'period - until > factor * history.periods',
        to: 'period - until > 4'
      }
    ],
    breaks: ['accounts']
  },
  {
    without: 'inputs that are learned again when no batch of the lineage can use their gradients',
    changes: [{ file: 'src/admb/core/ledger.js', from: '!this.#repeats || segment.inputs.length === 0', to: 'true' }],
    breaks: ['completeness'],
    scenario: { journal: true }
  },
  {
    without: 'the journal (a restarted node forgets its segments)',
    seed: 51,
    changes: [{ file: 'src/admb/driver/driver.js', from: 'if (records) this.#node.recover(records);', to: '' }],
    breaks: ['completeness'],
    scenario: { journal: true }
  },
  {
    without: 'the link of a segment to the earlier one with the same inputs',
    seed: 14,
    changes: [
      { file: 'src/admb/core/journal.js', from: 'segment.used || (segment.of', to: 'segment.used || (undefined' }
    ],
    breaks: ['purity', 'completeness'],
    scenario: { journal: true, carry: 1_000_000 }
  },
  {
    without: 'the record of a segment before its frame leaves',
    changes: [
      {
        file: 'src/admb/driver/driver.js',
        from: 'const bytes = this.#node.frame(edge); this.record();',
        to: 'const bytes = this.#node.frame(edge);'
      }
    ],
    breaks: ['completeness', 'purity'],
    scenario: { journal: true }
  },
  {
    without: 'an update with what is left when inputs are over',
    changes: [{ file: 'src/admb/driver/remainder.js', from: 'this.#node.useRemainder();', to: '' }],
    breaks: ['remainder']
  },
  {
    without: 'the wait of a frame until its records are durable',
    changes: [
      {
        file: 'src/admb/driver/journal-queue.js',
        from: 'if (!this.#isWriting) action(this.#error);',
        to: 'if (true) action(this.#error);'
      }
    ],
    breaks: ['completeness', 'purity'],
    scenario: { journal: true, diskTime: 2, period: 2 }
  },
  {
    without: 'the wait of a checkpoint until the records before it are durable',
    seed: 6,
    changes: [
      {
        file: 'sim/faults/disk.js',
        from: 'this.#queue.whenDurable(() => (this.#storing = { ...checkpoint, until: this.#host.now + this.#time }));',
        to: 'this.#storing = { ...checkpoint, until: this.#host.now + this.#time };'
      }
    ],
    breaks: ['completeness', 'purity'],
    scenario: { journal: true, diskTime: 2, period: 2 }
  },
  {
    without: 'segments with all inputs that a record counts',
    seed: 2,
    changes: [
      {
        file: 'src/admb/driver/driver.js',
        from: 'this.#node.closeSegment(); journal.append(',
        to: 'journal.append('
      }
    ],
    breaks: ['completeness'],
    scenario: { journal: true, diskTime: 2, period: 2 }
  },
  {
    without: 'transfer numbers (fragments of different frames are mixed)',
    seed: 3,
    changes: [{ file: 'src/admb/wire/fragments.js', from: 'if (transfer > this.#transfer)', to: 'if (false)' }],
    breaks: ['acceptance', 'purity']
  },
  {
    without: 'chains of steps (only holders of the parent receive steps)',
    changes: [
      {
        file: 'src/admb/core/current-predictor.js',
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
        file: 'src/admb/core/current-predictor.js',
        from: 'const older = base ? this.#stepsBefore(base, before) : [];',
        to: 'const older = this.#steps;'
      }
    ],
    breaks: ['acceptance', 'identity']
  },
  {
    without: 'the check that the base of a difference is kept (a sum is added to one that it contains)',
    changes: [
      {
        file: 'src/admb/wire/exchanged-sums.js',
        from: 'return sent.get(base) === undefined ? 0 : base;',
        to: 'return base;'
      }
    ],
    breaks: ['size', 'acceptance', 'purity'],
    scenario: { sums: 'lattice', keptBytes: 0 }
  },
  {
    without: 'the wait for sums on their way (they displace the one to which a step refers)',
    changes: [
      { file: 'src/admb/wire/exchanged-sums.js', from: 'return last !== undefined && ', to: 'return false && ' }
    ],
    breaks: ['economy'],
    scenario: { sums: 'lattice', keptBytes: 0 }
  },
  {
    without: 'the repetition of a lost sum while no further ones may be on their way',
    seed: 23,
    changes: [
      {
        file: 'src/admb/core/outgoing-sums.js',
        from: 'if (last === undefined ||',
        to: 'if (edge.exchanged?.isFull || last === undefined ||'
      }
    ],
    breaks: ['quiescence'],
    scenario: { sums: 'lattice', keptBytes: 0, delay: 'constant', loss: 0, reorder: 0, batch: 60 }
  },
  {
    without: 'the residual (what rounding takes from a gradient is lost)',
    seed: 37,
    changes: [{ file: 'src/admb/state/rounding.js', from: 'residual[i] = rest;', to: 'residual[i] = 0;' }],
    breaks: ['books']
  },
  {
    without: 'the correction for segments that were rounded anew for a rival',
    seed: 37,
    changes: [{ file: 'src/admb/state/rounding.js', from: 'residual[i] += lost;', to: 'return;' }],
    breaks: ['books']
  },
  {
    without: 'the grid of the adopted predictor (gradients are rounded to the old one)',
    changes: [
      { file: 'src/admb/core/ledger.js', from: 'this.#grid = grid;\n        const isDropped', to: 'const isDropped' }
    ],
    breaks: ['size', 'purity', 'acceptance', 'lineage', 'books']
  },
  {
    without: 'sums of any size (a relay saturates)',
    isUnspecified: true,
    changes: [
      {
        file: 'src/numeric/support.js',
        from: 'i++)\n            block[i] += addend[i];',
        to: 'i++) block[i] = Math.min(7, block[i] + addend[i]);'
      }
    ],
    breaks: ['size', 'purity', 'books']
  },
  {
    without: 'the wait of a frame for its fragments',
    seed: 15,
    changes: [{ file: 'src/admb/core/edge.js', from: 'this.deferred = frame;', to: '' }],
    breaks: ['quiescence', 'idempotence']
  }
]

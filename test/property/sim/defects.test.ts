/**
 * Mutation test: defects that violate the remaining properties.
 */
import { describeMutants } from '../../support/mutants.js'

describeMutants('defects', [
  {
    without: 'the grace after a stall',
    seed: 14,
    changes: [{ file: 'src/overlay/node.js', from: 'this.#state.postpone(ms);', to: '' }],
    breaks: ['overlay'],
    scenario: { topology: 'overlay' }
  },
  {
    without: 'bytes as evidence that a neighbour is alive',
    seed: 9,
    changes: [
      {
        file: 'src/overlay/node.js',
        from: 'neighbour.lastReceived = Math.max(neighbour.lastReceived, now);',
        to: ''
      }
    ],
    breaks: ['overlay'],
    scenario: { topology: 'overlay' }
  },
  {
    without: 'the return after a hang',
    seed: 15,
    changes: [{ file: 'src/overlay/node.js', from: 'this.#state.begin(now); this.#advance(now);', to: '' }],
    breaks: ['overlay', 'quiescence'],
    scenario: { topology: 'overlay' }
  },
  {
    without: 'the contributors of its neighbours among those that it keeps',
    seed: 21,
    changes: [{ file: 'src/admb/core/neighbour-sums.js', from: 'encoder.mark(live); decoder.mark(live);', to: '' }],
    breaks: ['acceptance', 'purity', 'no echo', 'quiescence', 'size', 'idempotence', 'conservation', 'storable']
  },
  {
    without: 'the contributors of its lineage among those that it keeps',
    changes: [
      {
        file: 'src/admb/core/current-predictor.js',
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
        file: 'src/admb/core/ledger.js',
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
        file: 'src/admb/core/current-predictor.js',
        from: 'keepChain([...steps, ...older], maximumChainBytes(this.#shapes)).slice(0, lineage.length)',
        to: '[...steps, ...older]'
      }
    ],
    breaks: ['memory']
  },
  {
    without: 'a limit of the memory of the sums that it keeps',
    changes: [{ file: 'src/admb/wire/exchanged-sums.js', from: 'maxSize: this.#keptBytes', to: 'maxSize: 1000' }],
    breaks: ['memory'],
    scenario: { sums: 'lattice', keptBytes: 0 }
  },
  {
    without: 'repeated announcements',
    seed: 8,
    changes: [
      { file: 'src/admb/core/push-policy.js', from: 'if (edge.pushed.helloBackoff.due(period))', to: 'if (false)' }
    ],
    breaks: ['quiescence']
  },
  {
    without: 'the last gradient of a batch',
    changes: [
      {
        file: 'src/admb/core/node.js',
        from: 'this.gradients < needed',
        to: 'this.gradients < needed - 1'
      }
    ],
    breaks: ['size']
  },
  {
    without: 'the b of its predictor (that of the first one is used)',
    seed: 9,
    changes: [
      {
        file: 'src/admb/core/node.js',
        from: 'batchOf(this.#options.batch, this.predictor)',
        to: 'batchOf(this.#options.batch, this.#options.initial)'
      }
    ],
    breaks: ['size']
  },
  {
    without: 'a correct count of unshared gradients',
    seed: 18,
    changes: [
      {
        file: 'src/learning/rules/adaptive-batch.js',
        from: 'lastOf(sum)[0] += count',
        to: 'lastOf(sum)[0] += count + 1'
      }
    ],
    breaks: ['batch choice']
  },
  {
    without: 'a bound on the gradients that wait for an announced predictor',
    seed: 32,
    changes: [{ file: 'src/admb/core/node.js', from: 'WAIT_BATCHES * this.batch', to: 'Infinity' }],
    breaks: ['size']
  },
  {
    without: 'sums after a predictor has arrived',
    changes: [
      {
        file: 'src/admb/core/push-policy.js',
        from: 'return this.isBehind(edge) && push.sequence > acknowledged && ',
        to: 'return '
      }
    ],
    breaks: ['waiting']
  },
  {
    without: 'a bound on the time for which changed sums wait, where the period adapts',
    seed: 11,
    changes: [
      {
        file: 'src/admb/core/outgoing-sums.js',
        from: 'return period - last.period >= Math.min(MAX_PACE, most);',
        to: 'return false;'
      }
    ],
    breaks: ['quiescence']
  },
  {
    without: 'the bound of 64 periods on that time',
    changes: [
      { file: 'src/admb/core/outgoing-sums.js', from: 'Math.min(MAX_PACE, most)', to: 'Math.max(2 * MAX_PACE, most)' }
    ],
    breaks: ['prompt'],
    scenario: {
      ...{ topology: 'tree', nodes: 3, batch: 60, interval: 4, period: 0.5, inputs: 400, speedSpread: 0 },
      ...{ autoPeriod: true, delay: 'constant', linkSpread: 0, bandwidth: 0, loss: 0, reorder: 0 }
    }
  },
  {
    without: 'the correction of sums that hold gradients of a lost link, where the period adapts',
    seed: 32,
    changes: [
      { file: 'src/admb/core/outgoing-sums.js', from: 'growth < 0 || growth >=', to: 'growth >=' },
      {
        file: 'src/admb/core/outgoing-sums.js',
        from: 'period - last.period >=',
        to: 'growth > 0 && period - last.period >='
      }
    ],
    breaks: ['flush', 'size', 'quiescence']
  },
  {
    without: 'the predictor that it announces',
    changes: [
      {
        file: 'src/admb/core/announcements.js',
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
        file: 'src/admb/core/updater.js',
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
        file: 'src/admb/core/neighbour-sums.js',
        from: 'if (this.#areDisjoint && this.#areSmall) return held;',
        to: 'if (this.#areDisjoint) { this.calls = (this.calls ?? 0) + 1; return except && this.calls % 5 === 0 ? [] : held; }'
      }
    ],
    breaks: ['quiescence', 'edge monotone']
  }
])

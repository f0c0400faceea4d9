/**
 * Code that only large models, large networks or long lives reach: with its limits reduced, the small models of the fuzzer reach it
 * too, and every property still holds.
 */
import assert from 'node:assert/strict'
import { type CodeChange, mutantOf, removeMutants } from '../../support/mutants.js'
import { share } from '../../support/runs.js'

const RUNS = share(60)

const supports: readonly CodeChange[] = [
  { file: 'src/numeric/support.js', from: 'const MIN_LENGTH = 2 ** 14;', to: 'const MIN_LENGTH = 2;' },
  { file: 'src/numeric/touched.js', from: 'const UNTOUCHED = 1024;', to: 'const UNTOUCHED = 4;' }
]

/** Combinations, as most limits do not affect each other. */
const reduced: Readonly<Record<string, readonly CodeChange[]>> = {
  'blocks with a support that are not reused, two bases of coverages, chains of two steps, and headers of one branch': [
    ...supports,
    { file: 'src/numeric/support.js', from: 'const MAX_SHARE = 1 / 8;', to: 'const MAX_SHARE = 0.7;' },
    { file: 'src/admb/state/vectors.js', from: 'const MAX_POOLED_BYTES = 1 << 16;', to: 'const MAX_POOLED_BYTES = 0;' },
    { file: 'src/admb/wire/coverage-encoder.js', from: 'const MAX_BASES = 64;', to: 'const MAX_BASES = 2;' },
    { file: 'src/admb/state/vectors.js', from: 'const MAX_STEPS = 64;', to: 'const MAX_STEPS = 2;' },
    { file: 'src/admb/core/current-predictor.js', from: 'const BRANCHES = 4;', to: 'const BRANCHES = 1;' }
  ],
  'dense blocks with a support, sums of one earlier predictor, and short lists of contributors': [
    ...supports,
    { file: 'src/numeric/support.js', from: 'const MAX_SHARE = 1 / 8;', to: 'const MAX_SHARE = 1;' },
    { file: 'src/admb/wire/exchanged-sums.js', from: 'const PAST_EXCHANGES = 3;', to: 'const PAST_EXCHANGES = 1;' },
    {
      file: 'src/admb/wire/coverage-encoder.js',
      from: 'export const LONG_LIST = 256;',
      to: 'export const LONG_LIST = 3;'
    },
    { file: 'src/admb/wire/coverage-encoder.js', from: 'const EPOCHS = 16;', to: 'const EPOCHS = 2;' },
    { file: 'src/admb/core/node.js', from: 'const COMPACTION_PERIODS = 256;', to: 'const COMPACTION_PERIODS = 2;' }
  ],
  'the encoding of long blocks': [
    { file: 'src/admb/wire/bytes.js', from: 'const SHORT_BLOCK = 64;', to: 'const SHORT_BLOCK = 0;' },
    { file: 'src/admb/wire/bytes.js', from: 'const SHORT_FRAME = 256;', to: 'const SHORT_FRAME = 0;' }
  ]
}

describe('the fuzzer with small limits', function () {
  this.timeout(300_000)
  after(removeMutants)

  for (const [number, [name, changes]] of Object.entries(reduced).entries()) {
    it(`finds no violation with ${name}`, async () => {
      const { fuzz } = await mutantOf(`limits-${number}`, changes)
      assert.deepEqual(
        fuzz(RUNS, 1, { shrink: false }).violations.map(({ property }) => property),
        []
      )
    })
  }
})

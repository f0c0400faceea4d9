/**
 * Code that only large models, large networks or long lives reach: with its limits reduced, the small models of the fuzzer reach it
 * too, and every property still holds.
 */
import assert from 'node:assert/strict'
import { type CodeChange, mutantOf, removeMutants } from '../../support/mutants.js'
import { share } from '../../support/runs.js'

const RUNS = share(60)

const supports: readonly CodeChange[] = [
  { point: 'MIN_LENGTH', from: '2 ** 14', to: '2' },
  { point: 'UNTOUCHED', from: '1024', to: '4' },
  { point: 'MIN_REUSED', from: '2 ** 14', to: '2' }
]

/** Combinations, as most limits do not affect each other. */
const reduced: Readonly<Record<string, readonly CodeChange[]>> = {
  'blocks with a support that are not reused, two bases of coverages, chains of two steps, and headers of one branch': [
    ...supports,
    { point: 'MAX_SHARE', from: '1 / 8', to: '0.7' },
    { point: 'MAX_POOLED_BYTES', from: '1 << 16', to: '0' },
    { point: 'MAX_BASES', from: '64', to: '2' },
    { point: 'MAX_STEPS', from: '64', to: '2' },
    { point: 'BRANCHES', from: '4', to: '1' }
  ],
  'dense blocks with a support, sums of one earlier predictor, and short lists of contributors': [
    ...supports,
    { point: 'MAX_SHARE', from: '1 / 8', to: '1' },
    { point: 'PAST_EXCHANGES', from: '3', to: '1' },
    { point: 'LONG_LIST', from: '256', to: '3' },
    { point: 'EPOCHS', from: '16', to: '2' },
    { point: 'COMPACTION_PERIODS', from: '256', to: '2' }
  ],
  'the encoding of long blocks': [
    { point: 'SHORT_BLOCK', from: '64', to: '0' },
    { point: 'SHORT_FRAME', from: '256', to: '0' }
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

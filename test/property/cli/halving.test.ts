/** The rounds of `admb tune`, for any number of candidates, rows and budget. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { halve, roundsFor } from '../../../src/cli/tune/halving.js'

const counts = fc.integer({ min: 1, max: 1000 })
const lengths = fc.integer({ min: 1, max: 1_000_000 })

describe('successive halving', () => {
  it('stays within the budget, with longer prefixes for fewer candidates', () => {
    fc.assert(
      fc.property(counts, lengths, fc.integer({ min: 10_000, max: 100_000_000 }), (candidates, rows, budget) => {
        const rounds = roundsFor(candidates, rows, budget)
        assert.equal(rounds[0].candidates, candidates)
        const cost = rounds.reduce((sum, round) => sum + round.candidates * round.rows, 0)
        assert.ok(cost <= budget, `${cost}`)
        for (const [i, round] of rounds.entries()) {
          assert.ok(round.rows >= 1 && round.rows <= rows)
          if (i > 0) assert.ok(round.rows >= rounds[i - 1].rows && round.candidates < rounds[i - 1].candidates)
        }
      })
    )
  })

  it('gives all candidates the whole stream if the budget allows it', () => {
    fc.assert(
      fc.property(counts, lengths, (candidates, rows) => {
        const rounds = roundsFor(candidates, rows, 1e12)
        assert.ok(rounds.every(round => round.rows === rows))
      })
    )
  })

  it('finds the least loss if losses do not depend on the prefix, the earlier candidate of two equal ones', async () => {
    const losses = fc.array(fc.oneof(fc.integer({ min: 0, max: 5 }), fc.constant(Number.POSITIVE_INFINITY)), {
      minLength: 1,
      maxLength: 200
    })
    await fc.assert(
      fc.asyncProperty(losses, async losses => {
        const rounds = roundsFor(losses.length, 5000, 1e9)
        const { ranked, first } = await halve({
          rounds,
          evaluate: async candidates => candidates.map(candidate => ({ loss: losses[candidate] }))
        })
        assert.equal(ranked[0].candidate, losses.indexOf(Math.min(...losses)))
        assert.equal(new Set(ranked.map(({ candidate }) => candidate)).size, losses.length)
        assert.deepEqual(first, { candidate: 0, rows: 5000, result: { loss: losses[0] } })
      })
    )
  })
})

/** `AdmbNode` refines the specification that runs: after every event of random runs with faults, both hold the same. */
import assert from 'node:assert/strict'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import fc from 'fast-check'
import { CountingInputs, countingRecipe } from '../../../sim/checkers/exact.js'
import { simulate } from '../../../sim/simulate.js'
import { type FixedKeys, type Trial, trials } from '../../../sim/testing/trials.js'
import { AdmbNode } from '../../../src/admb/index.js'
import { advance } from '../../../src/admb/state/predictor.js'
import { createMutant, mutantsOf, removeMutants } from '../../support/mutants.js'
import { refinementOf } from '../../support/refinement.js'
import { share } from '../../support/runs.js'

/** Sums of float32 numbers in frames of one piece, a fixed b, no journal: what the specification describes. */
const SPECIFIED = {
  algorithm: 'admb',
  journal: false,
  sums: 'exact',
  trust: { bounded: false },
  fragmentBytes: 2 ** 30
} satisfies FixedKeys

function check(Node: typeof AdmbNode, { scenario, faults }: Trial, run = simulate) {
  const inputs = new CountingInputs(scenario.inputs)
  const { node, counts } = refinementOf(Node, inputs, countingRecipe, advance)
  const specified = { ...scenario, checks: false, batchMax: undefined, localSteps: undefined }
  run(specified, { node, inputs, recipe: countingRecipe, quiesce: true, faults })
  return counts
}

describe('the specification of ADMB', () => {
  it('is what nodes do, in random runs with all faults', () => {
    const total = { comparisons: 0, updates: 0, adoptions: 0 }
    fc.assert(
      fc.property(trials(SPECIFIED), trial => {
        const counts = check(AdmbNode, trial)
        for (const key of ['comparisons', 'updates', 'adoptions'] as const) total[key] += counts[key]
      }),
      { numRuns: share(400) }
    )
    assert.ok(total.updates > 1000 && total.adoptions > 1000, JSON.stringify(total))
  })

  describe('is not what a mutant does', () => {
    after(removeMutants)
    for (const [number, { without, changes, unspecified }] of mutantsOf('repairs').entries()) {
      if (unspecified === undefined) continue
      it(`without ${without}`, async () => {
        const root = createMutant(`specified-${number}`, changes)
        const load = (path: string) => import(pathToFileURL(resolve(root, path)).href)
        const { AdmbNode: Mutant } = (await load('src/admb/index.js')) as { AdmbNode: typeof AdmbNode }
        const { simulate: run } = (await load('sim/simulate.js')) as { simulate: typeof simulate }
        const property = fc.property(trials(SPECIFIED), trial => void check(Mutant, trial, run))
        const { failed, numRuns, errorInstance } = fc.check(property, {
          ...{ numRuns: 400, endOnFailure: true, seed: 1, path: String(unspecified - 1) }
        })
        assert.ok(failed, 'no difference')
        const { message } = errorInstance as Error
        assert.match(message, /^refinement: /)
        console.log(`        in run ${unspecified + numRuns - 1}: ${message}`)
      })
    }
  })
})

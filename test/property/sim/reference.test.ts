/** `AdmbNode` refines the specification that runs: after every event of random runs with faults, both hold the same. */
import assert from 'node:assert/strict'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import fc from 'fast-check'
import type { simulate } from '../../../sim/simulate.js'
import { trials } from '../../../sim/testing/trials.js'
import type { AdmbNode } from '../../../src/admb/index.js'
import { createMutant, mutantsOf, removeMutants } from '../../support/mutants.js'
import { checkRefinement, SPECIFIED } from '../../support/refinement.js'
import { share } from '../../support/runs.js'

describe('the specification of ADMB', () => {
  it('is what nodes do, in random runs with all faults', () => {
    const total = { comparisons: 0, updates: 0, adoptions: 0 }
    fc.assert(
      fc.property(trials(SPECIFIED), trial => {
        const counts = checkRefinement(trial)
        for (const key of ['comparisons', 'updates', 'adoptions'] as const) total[key] += counts[key]
      }),
      { numRuns: share(400) }
    )
    assert.ok(total.updates > 1000 && total.adoptions > 1000, JSON.stringify(total))
  })

  describe('is not what a mutant does', () => {
    after(removeMutants)
    for (const { without, changes, unspecified } of mutantsOf('repairs')) {
      if (unspecified === undefined) continue
      it(`without ${without}`, async () => {
        const root = createMutant(`specified: ${without}`, changes)
        const load = (path: string) => import(pathToFileURL(resolve(root, path)).href)
        const { AdmbNode: Mutant } = (await load('src/admb/index.js')) as { AdmbNode: typeof AdmbNode }
        const { simulate: run } = (await load('sim/simulate.js')) as { simulate: typeof simulate }
        const property = fc.property(trials(SPECIFIED), trial => void checkRefinement(trial, Mutant, run))
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

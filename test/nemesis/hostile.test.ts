/** Real peers beside hostile ones. */
import assert from 'node:assert/strict'
import { needsNamespaces, run } from './short-run.js'

describe('real peers beside hostile ones', function () {
  this.timeout(600_000)
  before(needsNamespaces)

  it('agree, and name them', async () => {
    const kinds = ['unbounded', 'forged-predictor', 'equivocation', 'replayed-signatures', 'withholding', 'label-flip']
    const hostile = ['--nemeses', kinds.join(','), '--trust', 'bounded', '--rounds', `${kinds.length}`]
    const rounds = await run('--peers', '4', '--models', '300', '--lines', 'lan', '--seconds', '2', ...hostile)
    assert.deepEqual(rounds.map(({ nemesis }) => nemesis).sort(), kinds.sort())
    assert.ok((rounds.at(-1)?.audited ?? 0) > 1000)
  })
})

/** Real peers on an emulated network agree after faults. */
import assert from 'node:assert/strict'
import { needsNamespaces, run } from './short-run.js'

describe('real peers on an emulated network', function () {
  this.timeout(600_000)
  before(needsNamespaces)

  it('agree after each kind of fault', async () => {
    const rounds = await run('--peers', '5', '--models', '300', '--lines', 'lan', '--rounds', '21', '--seconds', '2,4')
    assert.ok(rounds.length >= 19)
    const audited = rounds.reduce((sum, round) => sum + (round.audited ?? 0), 0)
    assert.ok(audited > 1000, `the audit found only ${audited} inputs`)
    const lostLinks = rounds.reduce((sum, round) => sum + round.lostLinks, 0)
    assert.ok(lostLinks > 10, `the faults ended only ${lostLinks} links`)
  })
})

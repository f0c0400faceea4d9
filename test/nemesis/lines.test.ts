/** Real peers with a large model on slow lines. */
import assert from 'node:assert/strict'
import { needsNamespaces, run } from './short-run.js'

describe('real peers on slow lines', function () {
  this.timeout(600_000)
  before(needsNamespaces)

  it('agree on 10^6 parameters over lines of 10 Mbit/s', async () => {
    const faults = ['--nemeses', 'partition,kill,churn', '--rounds', '3', '--seconds', '5']
    const rounds = await run('--peers', '4', '--models', '1M', '--lines', 'dsl', ...faults)
    assert.equal(rounds.length, 3)
  })
})

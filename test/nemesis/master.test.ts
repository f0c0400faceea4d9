/** Real peers with MaWo and DMB, whose master is killed, paused or cut off. */
import assert from 'node:assert/strict'
import { needsNamespaces, run } from './short-run.js'

const FAULTS = ['master killed', 'master paused', 'master cut off']
/** Length of a fault in seconds, longer than the tree needs to notice that its root is gone. */
const SECONDS = 10

describe('real peers with a master', function () {
  this.timeout(600_000)
  before(needsNamespaces)

  const play = (algorithm: string) =>
    run(
      ...['--algorithm', algorithm, '--peers', '4', '--models', '300', '--lines', 'lan', '--batch', '256'],
      ...['--nemeses', FAULTS.join(), '--rounds', '3', '--seconds', `${SECONDS}`, '--episode', '3']
    )

  it('MaWo: another master continues before the old one is back', async () => {
    const rounds = await play('mawo')
    assert.deepEqual(rounds.map(({ nemesis }) => nemesis).sort(), [...FAULTS].sort())
    for (const { nemesis, stalled } of rounds) assert.ok(stalled < SECONDS, `${nemesis}: no update for ${stalled} s`)
    assert.ok((rounds.at(-1)?.audited ?? 0) > 1000)
  })

  it('DMB: all wait for the master, and continue when it is back', async () => {
    const rounds = await play('dmb')
    for (const { nemesis, stalled } of rounds)
      assert.ok(stalled > SECONDS - 2, `${nemesis}: an update after ${stalled} s, without the master`)
    assert.ok((rounds.at(-1)?.audited ?? 0) > 1000)
  })
})

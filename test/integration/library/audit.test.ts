/** Audits among real peers: a sum is computed again from the inputs of its contributors, if they permit it. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LearningPeer } from '../../../src/library/create-peer.js'
import { libraryPeers } from '../../support/library-peers.js'
import { until } from '../../support/peer-processes.js'

describe('createPeer with auditors', function () {
  this.timeout(90_000)
  let directory: string
  const start = libraryPeers({ batch: 1000, degree: 2 })
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'admb-audit-'))
  })
  after(() => rm(directory, { recursive: true }))

  /** Peers in a row, of which each one has learned a few inputs: the first one audits the second one. */
  async function row(name: string, lists: (index: number, auditor: string) => string[]): Promise<LearningPeer[]> {
    const auditor = await start({ http: { port: 0 } })
    const peers = [auditor]
    for (const index of [1, 2]) {
      const dir = join(directory, `${name}-${index}`)
      const auditors = new Set(lists(index, auditor.id))
      peers.push(await start({ dir, auditors, peers: [...peers[index - 1].addresses] }))
      await until('it is linked', () => peers[index].status().neighbours.includes(peers[index - 1].id))
    }
    for (const [index, peer] of peers.entries()) {
      for (let i = 0; i <= index; i++)
        await peer.learnAll(
          [
            [1, i],
            [i, 1]
          ],
          ['yes', 'no']
        )
    }
    return peers
  }

  /** The numbers of inputs, or why they are not known, of the second and the third peer. */
  async function audited([auditor, second, third]: LearningPeer[]): Promise<[agrees: boolean | null, ...unknown[]]> {
    let found: [boolean | null, ...unknown[]] = [null]
    await until('the sum contains all inputs', async () => {
      const { agrees, count, contributors, norms } = await auditor.audit(second.id)
      const of = (peer: LearningPeer) => contributors.find(({ id }) => id === peer.id)
      found = [agrees, ...[second, third].map(peer => of(peer)?.inputs ?? of(peer)?.reason)]
      if (norms) assert.ok(norms.difference < 1e-3 * norms.sum || norms.difference <= norms.allowed)
      return count === 10
    })
    return found
  }

  it('confirms the sum of a neighbour, which contains that of another peer', async () => {
    const peers = await row('honest', (_, auditor) => [auditor])
    assert.deepEqual(await audited(peers), [true, 4, 6])
    await assert.rejects(peers[0].audit(peers[2].id), /is not a tree neighbour of this peer/)
    const answer = await fetch(`${peers[0].url}/audit?peer=${peers[1].id}`)
    const { agrees, count } = (await answer.json()) as { agrees: boolean; count: number }
    assert.deepEqual([answer.status, agrees, count], [200, true, 10])
  })

  it('says which contributor does not permit it, and that all have signed the sum', async () => {
    const peers = await row('private', (index, auditor) => (index === 1 ? [auditor] : []))
    const search = audited(peers)
    assert.deepEqual(await search, [null, 4, 'this peer is not among its auditors'])
    for (const inputs of [true, false]) {
      const { signed, signedContent, agrees, contributors } = await peers[0].audit(peers[1].id, { inputs })
      assert.deepEqual([signed, signedContent, agrees], [true, 'gradients', null])
      assert.deepEqual(contributors.map(one => one.signed).sort(), [4, 6])
      assert.equal(
        contributors.some(one => one.inputs !== undefined),
        inputs
      )
    }
  })

  it('requires a state directory, and sums that can be computed again', async () => {
    const auditors = new Set(['12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN'])
    await assert.rejects(start({ auditors }), /auditors .*: the journal says which inputs a sum contains: give dir/)
    const dir = join(directory, 'local')
    await assert.rejects(start({ auditors, dir, localSteps: 4 }), /local steps are not computed again/)
  })
})

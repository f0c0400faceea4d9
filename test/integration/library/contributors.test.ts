/** Contributors among real peers with bounded influence: gradients of peers that are not on the allow-list are not used. */
import assert from 'node:assert/strict'
import type { CreatePeerOptions } from '../../../src/library/create-peer.js'
import { generateIdentityKey, peerIdOf } from '../../../src/network/keys.js'
import { libraryPeers } from '../../support/library-peers.js'
import { until } from '../../support/peer-processes.js'

describe('createPeer with bounded influence and an allow-list', function () {
  this.timeout(60_000)
  const start = libraryPeers({ batch: 3, trust: 'bounded' })

  it('uses gradients of listed peers only, and stays connected with a peer that passes on others', async () => {
    const keys = await Promise.all([1, 2, 3].map(generateIdentityKey))
    const ids = keys.map(peerIdOf)
    const warnings: string[] = []
    const create = (index: number, listed: readonly number[], options: Partial<CreatePeerOptions> = {}) =>
      start({ identity: keys[index], allow: new Set(listed.map(i => ids[i])), ...options })
    const middle = await create(1, [0, 1, 2])
    const log: CreatePeerOptions['log'] = (level, message) => level === 'warn' && warnings.push(message)
    const first = await create(0, [0, 1], { peers: middle.addresses, log })
    const last = await create(2, [1, 2], { peers: middle.addresses })
    await until('all are connected', () => middle.status().neighbours.length === 2)
    await first.learn([1, 0], 'yes')
    await last.learn([0, 1], 'no')
    const expected = `sums of ${middle.id} are not used: they contain gradients of ${last.id}, which is not on the allow-list`
    await until('the first peer has noticed', () => warnings.includes(expected))
    await middle.learn([1, 1], 'yes')
    await until('the gradients of all make an update', () => [first, last].every(peer => peer.status().updates === 1))
    assert.equal(middle.status().neighbours.length, 2)
  })
})

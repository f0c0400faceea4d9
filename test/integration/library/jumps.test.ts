/** Thresholds for jumps among real peers: what only one of them knows waits, and is adopted when another one vouches for it. */
import assert from 'node:assert/strict'
import type { CreatePeerOptions } from '../../../src/library/create-peer.js'
import { generateIdentityKey, peerIdOf } from '../../../src/network/keys.js'
import { libraryPeers } from '../../support/library-peers.js'
import { until } from '../../support/peer-processes.js'

/** More than peers keep headers. */
const UPDATES = 1100

describe('createPeer with signers', function () {
  this.timeout(60_000)
  const create = libraryPeers({ batch: 1 })

  it('waits for a second peer that holds the predictor, and names the first one', async () => {
    const keys = await Promise.all([1, 2, 3].map(generateIdentityKey))
    const allow = new Set(keys.map(peerIdOf))
    const a = await create({ allow, trust: 'bounded', identity: keys[0] })
    await a.learnAll(Array(UPDATES).fill([1, 0]), Array(UPDATES).fill('yes'))
    const warnings: string[] = []
    const log: CreatePeerOptions['log'] = (level, message) => level === 'warn' && warnings.push(message)
    const b = await create({ allow, trust: { signers: 2 }, identity: keys[1], peers: a.addresses, log })
    await until('a predictor waits', () => b.status().problem !== undefined)
    const { problem = '', updates } = b.status()
    assert.equal(updates, 0)
    assert.equal(problem, `a predictor from ${a.id} (update ${UPDATES}) waits: 1 of 2 peers have signed it`)
    assert.ok(
      warnings.some(line => line.startsWith(`a predictor from ${a.id} (update ${UPDATES}, computed by ${a.id}) waits`)),
      warnings.join('\n')
    )
    await b.learn([0, 1], 'no')
    await until('b learns alone', () => b.status().updates === 1)
    await create({ allow, trust: 'bounded', identity: keys[2], peers: a.addresses })
    await until('b has adopted it', () => b.status().updates >= UPDATES && b.status().problem === undefined)
  })

  it('needs an allow-list with enough peers', async () => {
    const allow = new Set([peerIdOf(await generateIdentityKey())])
    await assert.rejects(create({ trust: { signers: 2 } }), /signers counts peers of an allow-list: give allow/)
    await assert.rejects(create({ allow, trust: { signers: 3 } }), /signers is 3, but the allow-list names only 1 /)
    await assert.rejects(create({ allow, trust: { signers: -1 } }), /signers must be an integer from 0 to 64, not -1/)
  })
})

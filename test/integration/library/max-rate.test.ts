/** Real peers of which one contributes more than others accept: its further gradients are not used, and it is named. */
import assert from 'node:assert/strict'
import type { CreatePeerOptions } from '../../../src/library/create-peer.js'
import { libraryPeers } from '../../support/library-peers.js'
import { until } from '../../support/peer-processes.js'

const ROWS = [
  [1, 0],
  [0, 1]
]

describe('createPeer with a rate', function () {
  this.timeout(60_000)
  const create = libraryPeers({ batch: 4096 })

  it('uses no more gradients of a peer than it allows, and names it', async () => {
    const warnings: string[] = []
    const log: CreatePeerOptions['log'] = (level, message) => level === 'warn' && warnings.push(message)
    const a = await create({ trust: { rate: 5 }, log })
    const b = await create({ trust: 'bounded', peers: a.addresses })
    await until('they are linked', () => a.status().neighbours.length === 1)
    for (let i = 0; i < 10; i++) await b.learnAll(ROWS, ['yes', 'no'])
    // It may save up 50 gradients.
    await a.learnAll(ROWS, ['yes', 'no'])
    for (let i = 0; i < 400; i++) await b.learnAll(ROWS, ['yes', 'no'])
    await until('b is named', () => warnings.some(line => line.includes(`that ${b.id} sends are not used`)))
    assert.match(warnings.join('\n'), /their contributors claim more than --trust bounded,rate=N allows/)
  })

  it('must be above 0, and at least the rate of the peer itself', async () => {
    await assert.rejects(create({ trust: { rate: 0 } }), /rate must be a number above 0, not 0/)
    await assert.rejects(create({ trust: { rate: 5 }, rate: 10 }), /raise the rate of --trust on all peers/)
  })
})

/** Real peers of which one learns flipped labels: the other one uses none of its gradients and updates, and names it. */
import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import type { CreatePeerOptions } from '../../../src/library/create-peer.js'
import { libraryPeers } from '../../support/library-peers.js'
import { until } from '../../support/peer-processes.js'

const ROWS = [
  [1, 0],
  [0, 1]
]

describe("createPeer with gate 'all'", function () {
  this.timeout(60_000)
  const create = libraryPeers({ batch: 32 })

  it('learns right beside a peer that learns the contrary, and names it', async () => {
    const warnings: string[] = []
    const log: CreatePeerOptions['log'] = (level, message) => level === 'warn' && warnings.push(message)
    const a = await create({ gate: 'all', log })
    for (let i = 0; i < 64; i++) await a.learnAll(ROWS, ['yes', 'no'])
    const b = await create({ peers: a.addresses })
    await until('they are linked', () => a.status().neighbours.length === 1)
    await until('b is named', async () => {
      await until('b has the predictor', () => b.status().updates === a.status().updates)
      await b.learnAll(ROWS, ['no', 'yes'])
      // Several periods, in which a receives the sum.
      await delay(100)
      for (let i = 0; i < 16; i++) await a.learnAll(ROWS, ['yes', 'no'])
      return warnings.some(line => line.startsWith(`gradients that ${b.id} sends are not used`))
    })
    const predictions = await Promise.all(ROWS.map(row => a.predict(row)))
    assert.deepEqual(
      predictions.map(({ label }) => label),
      ['yes', 'no']
    )
  })

  it('needs a linear model or a small network', async () => {
    const model = { model: 'mlp', hidden: [1000, 1000] } as const
    await assert.rejects(create({ gate: 'all', model }), /gate 'all' requires a linear model or a small network/)
    await create({ gate: 'all', model: 'mlp' })
  })
})

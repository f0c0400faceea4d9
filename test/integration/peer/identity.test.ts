/** Peers that use an identity again: without a state directory, one after the other and at the same time. */
import assert from 'node:assert/strict'
import { type CreatePeerOptions, createPeer, type LearningPeer } from '../../../src/library/create-peer.js'
import { generateIdentityKey } from '../../../src/network/index.js'
import { until } from '../../support/peer-processes.js'

const LOOPBACK = ['/ip4/127.0.0.1/tcp/0']

describe('an identity that is used again', function () {
  this.timeout(120_000)
  const peers: LearningPeer[] = []
  const warnings: string[] = []
  const create = async (options: Partial<CreatePeerOptions> = {}) => {
    const log = (level: string, message: string) => void (level === 'warn' && warnings.push(message))
    const peer = await createPeer({
      ...{ features: 2, classNames: ['no', 'yes'], batch: 4, period: 20, listen: LOOPBACK, log },
      ...options
    })
    peers.push(peer)
    return peer
  }
  const learn = async (peer: LearningPeer, inputs: number) => {
    await peer.learnAll(Array(inputs).fill([1, 0]), Array(inputs).fill('yes'))
  }
  beforeEach(() => {
    warnings.length = 0
  })
  afterEach(async () => {
    await Promise.all(peers.splice(0).map(peer => peer.stop()))
  })

  it('violates nothing in runs without a state directory', async () => {
    const identity = await generateIdentityKey()
    const witness = await create()
    for (let run = 0; run < 4; run++) {
      const peer = await create({ identity })
      // It makes predictors of its own with the numbers of updates of its earlier runs.
      await learn(peer, 8 + 4 * run)
      const joined = await create({ peers: [...witness.addresses, ...peer.addresses] })
      const all = [witness, peer, joined]
      await until('they form a tree', () => all.reduce((sum, one) => sum + one.status().neighbours.length, 0) === 4)
      await learn(witness, 5)
      await until('all agree', () => {
        const [a, b, c] = all.map(one => one.status().predictor.digest)
        return a === b && b === c
      })
      await Promise.all([peer.stop(), joined.stop()])
      peers.splice(1)
    }
    assert.deepEqual(
      warnings.filter(line => /is banned/.test(line)),
      []
    )
  })

  it('is reported by the network and by both peers while two of them are live', async () => {
    const identity = await generateIdentityKey()
    const [first, second] = [await create(), await create()]
    const other = await create({ peers: first.addresses })
    await until('the witnesses are linked', () => other.status().neighbours.length === 1)
    const twins = [
      await create({ identity, peers: first.addresses }),
      await create({ identity, peers: [...other.addresses, ...second.addresses] })
    ]
    for (const peer of [first, ...twins])
      await until(`${peer.id} knows`, () => /another live peer/.test(`${peer.status().problem} ${warnings}`), 60_000)
    await until('a twin reports it', () => twins.some(peer => /another live/.test(peer.status().problem ?? '')))
    assert.ok(warnings.some(line => line.includes(twins[0].id)))
  })
})

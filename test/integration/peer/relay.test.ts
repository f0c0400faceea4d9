/** `admb peer --relay`: two peers learn together, one of which listens only through a third peer with another model. */
import assert from 'node:assert/strict'
import { agree, PeerProcesses, until } from '../../support/peer-processes.js'

describe('peers with a relay between them', function () {
  this.timeout(90_000)
  const processes = new PeerProcesses()
  afterEach(() => processes.stop())

  it('learn one predictor', async () => {
    const model = await processes.modelOptions('a network')
    const relay = await processes.start('--dimension', '4', '--relay').ready()
    const data = (part: number) => [
      '--data',
      'digits',
      '--shard',
      `${part}/2`,
      '--limit',
      '1500',
      '--rate',
      '500',
      ...model
    ]
    const listen = `${relay.latest.addresses[0]}/p2p-circuit`
    const hidden = await processes.start(...data(1), '--listen', listen).ready()
    const [address] = hidden.latest.addresses
    assert.match(address, /\/p2p-circuit\/p2p\/12D3Koo\w+$/)
    const other = await processes.start(...data(2), '--peer', address).ready()
    const peers = [hidden, other]
    await until('they are linked', () => peers.every(({ latest }) => latest.neighbours.length === 1))
    assert.deepEqual(other.latest.neighbours, [hidden.latest.id])
    await until(
      'they agree',
      () => peers.every(({ latest }) => latest.updates > 5 && latest.inputs >= 1000) && agree(peers)
    )
    assert.deepEqual(processes.equivocations, [])
    assert.equal(relay.latest.neighbours.length, 0)
  })
})

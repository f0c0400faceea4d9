/** Three peers with a 2|1 partition, by closing and blocking connections, which then heals. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { agree, LEARNERS, PeerProcesses, until } from '../../support/peer-processes.js'

describe('a partition', function () {
  this.timeout(120_000)
  const processes = new PeerProcesses()
  afterEach(() => processes.stop())

  for (const learner of LEARNERS)
    it(`of peers with ${learner} lets both sides continue, and ends in one predictor when it heals`, async () => {
      const common = ['--data', 'digits', '--batch', '32', '--period', '20', '--rate', '250', '--limit', '4000']
      common.push(...(await processes.modelOptions(learner)))
      const first = await processes.start(...common, '--shard', '1/3').ready()
      const [address] = first.latest.addresses
      const rest = ['2/3', '3/3'].map(shard => processes.start(...common, '--shard', shard, '--peer', address))
      const peers = [first, ...(await Promise.all(rest.map(peer => peer.ready())))]
      const ids = peers.map(peer => peer.latest.id)
      const edges = () => peers.reduce((sum, peer) => sum + peer.latest.neighbours.length, 0)
      await until('three peers form a tree', () => edges() === 4)

      peers[0].block(ids[2])
      peers[1].block(ids[2])
      peers[2].block(ids[0], ids[1])
      await until('the third peer is disconnected', () => peers[2].latest.neighbours.length === 0 && edges() === 2)
      const before = peers.map(peer => peer.latest)
      await sleep(2500)
      for (const [i, peer] of peers.entries()) {
        const { inputs, updates, neighbours } = peer.latest
        assert.ok(inputs > before[i].inputs && updates > before[i].updates, `peer ${i + 1} continues`)
        assert.ok(!neighbours.includes(i === 2 ? ids[0] : ids[2]))
      }
      assert.notEqual(peers[0].latest.predictor.digest, peers[2].latest.predictor.digest)

      for (const peer of peers) peer.block()
      await until('three peers form a tree again', () => edges() === 4)
      await until('all streams have ended, and all peers agree', () => {
        return peers.every(peer => peer.latest.ended) && agree(peers)
      })
      assert.deepEqual(processes.equivocations, [])
      assert.deepEqual(await Promise.all(peers.map(peer => peer.stop())), [0, 0, 0])
    })
})

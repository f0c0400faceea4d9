/** Three peers with a 2|1 partition, by closing and blocking connections, which then heals. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { agree, PeerProcesses, until } from '../../support/peer-processes.js'

/** LIBSVM rows with two features. */
const rows = (count: number) =>
  Array.from({ length: count }, (_, i) => `${i % 2} 1:${(i % 7) + (i % 2)} 2:${i % 3}\n`).join('')

describe('a partition', function () {
  this.timeout(120_000)
  const processes = new PeerProcesses()
  let feed: NodeJS.Timeout
  afterEach(() => {
    clearInterval(feed)
    return processes.stop()
  })

  // Sites with files of their own are divided with a convex model.
  it('of peers with a network lets both sides continue, and ends in one predictor when it heals', async () => {
    const common = ['--data', '-', '--format', 'libsvm', '--dimension', '2', '--classes', '2']
    common.push('--batch', '32', '--period', '20', ...(await processes.modelOptions('a network')))
    const first = await processes.start(...common).ready()
    const [address] = first.latest.addresses
    const rest = [1, 2].map(() => processes.start(...common, '--peer', address))
    const peers = [first, ...(await Promise.all(rest.map(peer => peer.ready())))]
    // The streams last until the test ends them, however slow the machine is.
    feed = setInterval(() => {
      for (const peer of peers) peer.child.stdin?.write(rows(25))
    }, 100)
    const ids = peers.map(peer => peer.latest.id)
    const edges = () => peers.reduce((sum, peer) => sum + peer.latest.neighbours.length, 0)
    await until('three peers form a tree', () => edges() === 4)

    peers[0].block(ids[2])
    peers[1].block(ids[2])
    peers[2].block(ids[0], ids[1])
    await until('the third peer is disconnected', () => peers[2].latest.neighbours.length === 0 && edges() === 2)
    const before = peers.map(peer => peer.latest)
    await until('all peers continue', () =>
      peers.every(({ latest: { inputs, updates } }, i) => inputs > before[i].inputs && updates > before[i].updates)
    )
    // Time enough to be linked again, if the block had a gap.
    await sleep(2500)
    for (const [i, peer] of peers.entries()) assert.ok(!peer.latest.neighbours.includes(i === 2 ? ids[0] : ids[2]))
    assert.notEqual(peers[0].latest.predictor.digest, peers[2].latest.predictor.digest)

    for (const peer of peers) peer.block()
    await until('three peers form a tree again', () => edges() === 4)
    clearInterval(feed)
    for (const peer of peers) peer.child.stdin?.end()
    await until('all streams have ended, and all peers agree', () => {
      return peers.every(peer => peer.latest.ended) && agree(peers)
    })
    assert.deepEqual(processes.equivocations, [])
    assert.deepEqual(await Promise.all(peers.map(peer => peer.stop())), [0, 0, 0])
  })
})

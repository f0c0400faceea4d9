/** The demonstration with fewer inputs: all of its faults, and the final agreement. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { MAIN } from '../../support/peer-processes.js'

describe('admb demo', function () {
  this.timeout(120_000)

  it('kills and restarts a peer, partitions and heals the network, and its peers agree', async () => {
    const args = [MAIN, 'demo', '--json', '--passes', '1', '--rate', '180', '--batch', '64']
    const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 100_000 })
    const { command, peers, agreed, events, violations, cluster, serial, isolated } = JSON.parse(stdout)
    assert.equal(command, 'demo')
    assert.equal(agreed, true)
    assert.equal(violations, 0)
    assert.equal(peers.length, 5)
    assert.equal(new Set(peers.map((peer: { predictor: { digest: string } }) => peer.predictor.digest)).size, 1)
    const kinds = events.map(({ kind }: { kind: string }) => kind)
    const started = new Array(5).fill('started')
    assert.deepEqual(kinds, [...started, 'linked', 'killed', 'restarted', 'partitioned', 'healed', 'agreed'])
    for (const result of [cluster, serial, isolated]) assert.ok(result.averageLoss > 0 && result.accuracy > 0.5)
    // However slow the processes are. With all inputs it is 1.03.
    assert.ok(cluster.averageLoss < 1.05 * serial.averageLoss, `${cluster.averageLoss} over ${serial.averageLoss}`)
  })
})

/** Tree edges of two peer processes that end, or that are stopped for a while. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { type PeerProcess, PeerProcesses, until } from '../../support/peer-processes.js'

describe('the edge of two peers', () => {
  const processes = new PeerProcesses()
  afterEach(() => processes.stop())

  async function startPair(): Promise<PeerProcess[]> {
    const common = ['--data', 'digits', '--batch', '512', '--rate', '50']
    const first = await processes.start(...common, '--shard', '1/2').ready()
    const second = await processes.start(...common, '--shard', '2/2', '--peer', first.latest.addresses[0]).ready()
    const pair = [first, second]
    await until('the peers are linked', () => pair.every(peer => peer.latest.neighbours.length === 1))
    return pair
  }

  const ended = (peer: PeerProcess) =>
    peer.logs.filter(({ msg }) => /^link with .* ended/.test(msg)).map(({ msg }) => msg)

  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    it(`is reported down once when the other end closes it after ${signal}`, async () => {
      const [first, second] = await startPair()
      await second.stop(signal)
      await until('the edge is down', () => ended(first).length > 0)
      await sleep(500)
      assert.equal(ended(first).length, 1, ended(first).join('\n'))
    })
  }

  it('lasts when both peers are stopped for longer than a neighbour may be silent', async () => {
    const pair = await startPair()
    for (const { child } of pair) child.kill('SIGSTOP')
    await sleep(6000)
    for (const { child } of pair) child.kill('SIGCONT')
    await sleep(3000)
    assert.deepEqual(pair.flatMap(ended), [])
    for (const peer of pair) assert.equal((await peer.fetchStatus()).neighbours.length, 1)
  })
})

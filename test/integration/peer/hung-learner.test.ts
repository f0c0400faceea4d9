/** A peer whose learner thread hangs, between two others. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPeer, type LearningPeer } from '../../../src/library/create-peer.js'
import { until } from '../../support/peer-processes.js'

/** Inputs per second of the peer that hangs, by which the plug-in recognises it. */
const RATE = 101

/** A loss that blocks a learner thread while the file `hang` exists. */
const PLUGIN = `
import { existsSync } from 'node:fs'
import { workerData } from 'node:worker_threads'
const hangs = workerData?.rate === ${RATE}
const file = new URL('./hang', import.meta.url)
const never = new Int32Array(new SharedArrayBuffer(4))
const slow = {
  classifies: false,
  value(score, label) {
    while (hangs && existsSync(file)) Atomics.wait(never, 0, 0, 50)
    return 0.5 * (score - label) ** 2
  },
  slope: (score, label) => score - label
}
export const plugin = { losses: { slow } }
`

describe('a peer whose learner hangs', function () {
  this.timeout(120_000)
  const peers: LearningPeer[] = []
  let folder = ''
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'admb-test-'))
  })
  afterEach(async () => {
    await rm(join(folder, 'hang'), { force: true })
    await Promise.all(peers.splice(0).map(peer => peer.stop()))
    await rm(folder, { recursive: true })
  })

  it('leaves the tree, says so, and returns when the learner does', async () => {
    const plugin = join(folder, 'slow.mjs')
    await writeFile(plugin, PLUGIN)
    const data = join(folder, 'rows.svm')
    await writeFile(data, Array.from({ length: 40_000 }, (_, i) => `${i % 3} 1:${i % 5} 2:1\n`).join(''))
    const start = async (name: string, rate: number, ...addresses: string[]) => {
      const task = { data: { data, dimension: 3 }, model: 'custom:slow', plugins: [plugin], batch: 16, rate }
      const net = { listen: ['/ip4/127.0.0.1/tcp/0'], peers: addresses, http: { port: 0 } }
      const peer = await createPeer({ ...task, ...net, name })
      peers.push(peer)
      return peer
    }
    const middle = await start('middle', RATE)
    const [left, right] = await Promise.all(['left', 'right'].map(name => start(name, 100, middle.addresses[0])))
    await until('both are linked with the middle', () => middle.status().neighbours.length === 2)

    await writeFile(join(folder, 'hang'), '')
    await until('the others are linked with each other', () => {
      return left.status().neighbours.join() === right.id && right.status().neighbours.join() === left.id
    })
    assert.deepEqual(middle.status().neighbours, [])
    assert.match(middle.status().problem ?? '', /the learner has not responded for \d+ s/)
    const ready = await fetch(`${middle.url}/readyz`)
    assert.equal(ready.status, 503)
    assert.match(await ready.text(), /the learner has not responded/)
    await until('the pages of the others say so', async () => {
      const { peers: rows } = (await (await fetch(`${left.url}/peers`)).json()) as {
        peers: { name: string; problem?: string }[]
      }
      return rows.some(({ name, problem }) => name === 'middle' && problem?.startsWith('the learner') === true)
    })

    await rm(join(folder, 'hang'))
    await until('all are linked again', () => {
      const counts = [middle, left, right].map(peer => peer.status().neighbours.length)
      return counts.reduce((a, b) => a + b) === 4 && counts[0] > 0
    })
    assert.equal(middle.status().problem, undefined)
    assert.equal((await fetch(`${middle.url}/readyz`)).status, 200)
  })
})

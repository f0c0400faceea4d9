/** Peers that are killed at random instants use every input exactly once. The parameters count the uses. */
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Random } from '../../../sim/engine/random.js'
import { sizeOf } from '../../../src/admb/core/journal.js'
import type { AuditReport } from '../../../src/peer/audit.js'
import type { PeerStatus } from '../../../src/peer/index.js'
import { admbJson } from '../../support/admb-command.js'
import { until } from '../../support/peer-processes.js'
import { share } from '../../support/runs.js'

const PROGRAM = fileURLToPath(new URL('../../support/counting-peer.js', import.meta.url))
const PLUGIN = `
const unit = { classifies: false, value: () => 0, slope: () => -1 }
const add = () => ({ step: ({ parameters }, sum) => ({
  parameters: parameters.map((block, b) => block.map((value, i) => value - sum[b][i])), state: [] }) })
export const plugin = { losses: { count: unit }, rules: { add } }
`
const PEERS = 3
/** For long runs by hand: ADMB_KILLS=1000. */
const KILLS = Number(process.env.ADMB_KILLS ?? share(24))
/** Rows a second of each peer: fewer in a long run, as the model has a parameter for each row. */
const RATE = KILLS > 100 ? 60 : 400
/** Mean time between two kills, with the restart. */
const KILL_SECONDS = 1.2

interface Running {
  readonly child: ChildProcess
  readonly address: string
  readonly url: string
}

describe('peers that are killed', function () {
  this.timeout(300_000 + 10_000 * KILLS)
  let folder = ''
  const running = new Map<number, Running>()
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'admb-test-'))
    await writeFile(join(folder, 'count.mjs'), PLUGIN)
  })
  afterEach(async () => {
    for (const { child } of running.values()) child.kill('SIGKILL')
    running.clear()
    await rm(folder, { recursive: true })
  })

  it('use every row of their files, and every acknowledged input, exactly once', async () => {
    const random = new Random(Number(process.env.ADMB_SEED ?? 1))
    const rows = Math.ceil(RATE * KILL_SECONDS * KILLS * 0.7)
    // The features after those of the files belong to requests, and the last one fills the batches at the end.
    const requests = 40 * KILLS
    const dimension = PEERS * rows + requests + 1
    for (let peer = 0; peer < PEERS; peer++) {
      const lines = Array.from({ length: rows }, (_, row) => `1 ${peer * rows + row + 1}:1\n`)
      await writeFile(join(folder, `${peer}.svm`), lines.join(''))
    }
    const start = async (peer: number): Promise<void> => {
      const options = {
        plugin: join(folder, 'count.mjs'),
        data: join(folder, `${peer}.svm`),
        dimension: dimension + 1,
        dir: join(folder, `state-${peer}`),
        rate: RATE,
        batch: 24,
        // The parameters are exact counts.
        sums: 'exact',
        period: 40,
        carry: 1500,
        keepJournal: true,
        peers: [...running.values()].map(({ address }) => address)
      }
      const child = fork(PROGRAM, [JSON.stringify(options)], { stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
      let stderr = ''
      child.stderr?.on('data', (text: Buffer) => {
        stderr += text
      })
      const line = await new Promise<string>((resolve, reject) => {
        child.stdout?.once('data', (text: Buffer) => resolve(text.toString()))
        child.once('exit', code => reject(new Error(`peer ${peer} ended with code ${code}: ${stderr}`)))
      })
      running.set(peer, { child, ...JSON.parse(line) })
    }
    const counts = async (peer: number): Promise<Float32Array> => {
      const response = await fetch(`${running.get(peer)?.url}/predictor`)
      const bytes = new Uint8Array(await response.arrayBuffer())
      const length = Number(new DataView(bytes.buffer).getBigUint64(0, true))
      // The only tensor has one weight per feature, from feature 0 on.
      return new Float32Array(bytes.slice(8 + length).buffer, 0, dimension + 1)
    }
    const assertAtMostOnce = (found: Float32Array, when: string) => {
      const twice = found.findIndex((uses, feature) => uses > 1 && feature > 0 && feature < dimension)
      assert.equal(twice, -1, `feature ${twice} was used ${found[twice]} times ${when}`)
    }
    const learn = async (peer: number, feature: number): Promise<boolean> => {
      // Features of JSON lines are numbered from 0, those of LIBSVM from 1.
      const body = `{"label": 1, "features": {"${feature - 1}": 1}}\n`
      try {
        const response = await fetch(`${running.get(peer)?.url}/learn`, {
          method: 'POST',
          body,
          headers: { 'content-type': 'application/x-ndjson' }
        })
        return response.ok
      } catch {
        return false
      }
    }

    for (let peer = 0; peer < PEERS; peer++) await start(peer)
    const acknowledged: number[] = []
    let request = PEERS * rows
    let isOver = false
    const requesting = (async () => {
      while (!isOver && request < dimension - 1) {
        const feature = ++request
        if (await learn(Math.floor(random.next() * PEERS), feature)) acknowledged.push(feature)
        await sleep(20)
      }
    })()
    for (let kill = 1; kill <= KILLS; kill++) {
      await sleep(random.next() * 1000 * KILL_SECONDS)
      const peer = Math.floor(random.next() * PEERS)
      const { child } = running.get(peer) as Running
      child.removeAllListeners('exit')
      child.kill('SIGKILL')
      running.delete(peer)
      // Sometimes the others go on for a while without it.
      if (random.next() < 0.3) await sleep(1500 * random.next())
      await start(peer)
      assertAtMostOnce(await counts(peer), `after kill ${kill}`)
    }
    isOver = true
    await requesting
    const expected = [...Array.from({ length: PEERS * rows }, (_, row) => row + 1), ...acknowledged]
    let missing = expected
    await until(
      'all inputs are used',
      async () => {
        for (let peer = 0; peer < PEERS; peer++) {
          const found = await counts(peer)
          assertAtMostOnce(found, 'at the end')
          missing = expected.filter(feature => found[feature] !== 1)
          if (missing.length > 0) {
            // Sums of fewer than b gradients wait for the next inputs.
            for (let one = 0; one < PEERS; one++) await learn(one, dimension)
            return false
          }
        }
        return true
      },
      60_000 + (1000 * rows) / RATE
    ).catch(async error => {
      const statuses = await Promise.all(
        [...running.values()].map(async ({ url }) => {
          const { inputs, ended, discarded, updates, neighbours } = (await (
            await fetch(`${url}/status`)
          ).json()) as PeerStatus
          return JSON.stringify({ inputs, ended, discarded, updates, neighbours: neighbours.length })
        })
      )
      throw new Error(
        `${statuses.join(' ')} ${error.message}: ${missing.length} inputs are missing, such as ${missing.slice(0, 10)}`
      )
    })
    // From outside: the journals and the lineage say the same as the parameters.
    const exits = [...running.values()].map(({ child }) => new Promise(resolve => child.once('exit', resolve)))
    for (const { child } of running.values()) child.kill('SIGKILL')
    await Promise.all(exits)
    const dirs = Array.from({ length: PEERS }, (_, peer) => ['--dir', join(folder, `state-${peer}`)])
    const { lineage, peers } = (await admbJson(['audit', '--complete', ...dirs.flat()])) as AuditReport
    assert.ok(lineage.whole && peers.every(({ journalWhole }) => journalWhole))
    // The last updates may not have been stored: a start would decide about their inputs, or learn them again.
    const kept = peers.flatMap(({ runs }) =>
      runs.flatMap(one => (one.data === null ? [] : [...one.used, ...one.doubt, ...one.deferred]))
    )
    assert.equal(sizeOf(kept), PEERS * rows, 'all rows')
    assert.ok(peers.every(({ runs }) => runs.every(({ twice }) => twice.length === 0)))
  })
})

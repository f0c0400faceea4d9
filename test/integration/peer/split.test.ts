/** `admb split`: each row is learned by exactly one peer, also if peers and the splitter are killed. The parameters count the uses. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { appendFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Random } from '../../../sim/engine/random.js'
import { sizeOf } from '../../../src/admb/core/journal.js'
import type { AuditReport } from '../../../src/peer/audit.js'
import { admbJson, MAIN } from '../../support/admb-command.js'
import { CountingPeers } from '../../support/counting-peers.js'
import { until } from '../../support/peer-processes.js'
import { share } from '../../support/runs.js'

const PEERS = 3
const KILLS = Number(process.env.ADMB_KILLS ?? share(24))
/** Rows that are appended before each kill. */
const ROWS = 1500

const lines = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, row) => `1 ${from + row + 1}:1\n`).join('')

describe('admb split', function () {
  this.timeout(240_000 + 10_000 * KILLS)
  let counting: CountingPeers | undefined
  let splitter: ChildProcess | undefined
  afterEach(async () => {
    splitter?.kill('SIGKILL')
    await counting?.remove()
    counting = undefined
  })

  it('has each row learned exactly once, although peers and the splitter are killed and restarted', async () => {
    const random = new Random(Number(process.env.ADMB_SEED ?? 1))
    const all = ROWS * KILLS
    const peers = await CountingPeers.create(all + 1, { batch: 24, sums: 'exact', period: 40, carry: 1500 })
    counting = peers
    const file = join(peers.folder, 'rows.svm')
    await writeFile(file, '')
    for (let peer = 0; peer < PEERS; peer++) await peers.start(peer)
    const to = peers.urls.flatMap(url => ['--to', url])
    const state = join(peers.folder, 'split.state')
    let stderr = ''
    let stdout = ''
    const split = () => {
      const args = ['split', '--data', file, '--follow', '--state', state, ...to, '--json']
      const child = spawn(process.execPath, [MAIN, ...args])
      child.stderr.on('data', (text: Buffer) => (stderr += text))
      child.stdout.on('data', (text: Buffer) => (stdout += text))
      splitter = child
    }
    const ended = () => new Promise(resolve => splitter?.once('close', resolve))
    split()
    let written = 0
    for (let kill = 1; kill <= KILLS; kill++) {
      await appendFile(file, lines(written, written + ROWS))
      written += ROWS
      await sleep(1000 * random.next())
      if (random.next() < 0.3) {
        const end = ended()
        splitter?.kill('SIGKILL')
        await end
        split()
      } else {
        const peer = Math.floor(PEERS * random.next())
        await peers.kill(peer)
        await peers.start(peer)
        await peers.counts(peer)
      }
    }
    const rows = Array.from({ length: all }, (_, row) => row + 1)
    let missing: readonly number[] = rows
    await until(
      'all rows are used',
      async () => {
        missing = await peers.missing(rows)
        return missing.length === 0
      },
      120_000
    ).catch(error => {
      throw new Error(`${error.message}: ${missing.length} rows are missing, such as ${missing.slice(0, 5)}; ${stderr}`)
    })
    await until('the splitter knows it', async () => {
      const { waiting, peers } = JSON.parse(await readFile(state, 'utf8')) as { waiting: []; peers: { open: [] }[] }
      return waiting.length === 0 && peers.every(({ open }) => open.length === 0)
    })
    const end = ended()
    splitter?.kill('SIGTERM')
    assert.equal(await end, 0, stderr)
    const { inDoubt, unsent, skipped } = JSON.parse(stdout.trim().split('\n').at(-1) as string)
    assert.deepEqual([inDoubt, unsent, skipped], [0, 0, 0])
    for (let peer = 0; peer < PEERS; peer++) await peers.kill(peer, 'SIGTERM')
    const dirs = peers.dirs(PEERS).flatMap(dir => ['--dir', dir])
    const audit = (await admbJson(['audit', '--complete', ...dirs])) as AuditReport
    const kept = audit.peers.flatMap(({ runs }) =>
      runs.flatMap(({ used, doubt, deferred }) => [...used, ...doubt, ...deferred])
    )
    assert.equal(sizeOf(kept), all + peers.fillers)
    assert.ok(audit.peers.every(({ runs }) => runs.every(({ twice }) => twice.length === 0)))
  })
})

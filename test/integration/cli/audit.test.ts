/** `admb audit` reads the directories of stopped peers, and finds segments that were used twice or lost. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Level } from 'level'
import { createPeer } from '../../../src/index.js'
import type { AuditReport } from '../../../src/peer/audit.js'
import { admb, admbJson } from '../../support/admb-command.js'
import { until } from '../../support/peer-processes.js'

describe('admb audit', function () {
  this.timeout(60_000)
  let folder = ''
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'admb-test-'))
  })
  afterEach(() => rm(folder, { recursive: true }))

  /** A lone peer learns rows of `digits` until it has made so many more updates, and stops. @returns its directory */
  async function learned(updates: number, options: object = {}): Promise<string> {
    const dir = join(folder, 'state')
    const peer = await createPeer({
      data: { data: 'digits' },
      batch: 16,
      rate: 2000,
      period: 20,
      carry: 2,
      dir,
      listen: ['/ip4/127.0.0.1/tcp/0'],
      keepJournal: true,
      ...options
    })
    const { updates: before } = peer.status()
    await until('updates', () => peer.status().updates >= before + updates)
    await peer.stop()
    return dir
  }

  /** Changes records of the journal, those that the peer has dropped and those that it would still read. */
  async function tamper(dir: string, change: (record: Record<string, unknown>) => object | undefined): Promise<void> {
    const database = new Level<string, Uint8Array>(join(dir, 'db'), { valueEncoding: 'view' })
    let changes = 0
    for (const prefix of ['kept/journal', 'journal']) {
      for (const [key, value] of await database.iterator({ gt: `${prefix}/`, lt: `${prefix}0` }).all()) {
        const record = JSON.parse(Buffer.from(value).toString())
        const changed = change(record)
        if (changed === record) continue
        changes++
        if (changed === undefined) await database.del(key)
        else await database.put(key, new TextEncoder().encode(JSON.stringify(changed)))
      }
    }
    await database.close()
    assert.ok(changes > 0)
  }

  it('reports what each run used, over restarts', async () => {
    await learned(20)
    const dir = await learned(20)
    const report: AuditReport & { clean: boolean } = await admbJson(['audit', '--complete', '--dir', dir])
    assert.ok(report.clean && report.lineage.whole)
    const [{ runs, onLineage, journalWhole, unrecorded }] = report.peers
    assert.deepEqual([onLineage, journalWhole, unrecorded], [true, true, []])
    assert.deepEqual(
      runs.map(({ incarnation, data }) => [incarnation, data]),
      [
        [1, 'digits'],
        [2, 'digits']
      ]
    )
    const used = runs.flatMap(one => one.used)
    assert.equal(used[0], 0)
    assert.equal(used.at(-1), 16 * report.predictor.updates)
    const { stdout } = await admb(['audit', '--dir', dir])
    assert.match(stdout, /run 2, rows of digits\n +used /)
  })

  it('knows more updates than a lineage has headers', async () => {
    let dir = ''
    // A peer stores headers when it stops; while it runs, how often depends on the machine.
    for (let run = 0; run < 3; run++) dir = await learned(600, { batch: 1 })
    const { lineage, predictor }: AuditReport = await admbJson(['audit', '--dir', dir])
    assert.ok(predictor.updates >= 1800)
    assert.deepEqual(lineage, { from: 1, to: predictor.updates, whole: true })
  })

  it('fails if a segment is used twice', async () => {
    const dir = await learned(20)
    // A list carries a segment over that the update before has used.
    await tamper(dir, record => {
      if (record.kind !== 'epoch' || record.number !== 5) return record
      assert.deepEqual(record.carried, [])
      return { ...record, carried: [1] }
    })
    const { code, stderr, stdout } = await admb(['audit', '--dir', dir])
    assert.equal(code, 1)
    assert.match(
      stderr,
      /^admb: rows 0 to \d+ of digits of 12D3\w+ are used 2 times, by the updates 1, 5: .*\(ERR_AUDIT\)\n$/
    )
    assert.match(stdout, /used twice/)
    const json = await admb(['audit', '--dir', dir, '--json'])
    assert.equal(json.code, 1)
    assert.equal(JSON.parse(json.stdout).clean, false)
  })

  it('fails if an update used segments that the journal lacks, and with --complete if rows are lost', async () => {
    const dir = await learned(20)
    await tamper(dir, record => (record.kind === 'segment' && record.epoch === 3 ? undefined : record))
    const { code, stderr } = await admb(['audit', '--dir', dir])
    assert.equal(code, 1)
    assert.match(stderr, /update 3 used \d+ segments of 12D3\w+ in run 1 that its journal lacks/)
    const complete = await admb(['audit', '--dir', dir, '--complete', '--json'])
    assert.equal(JSON.parse(complete.stdout).peers[0].unrecorded[0].data, 'digits')
  })

  it('audits what is left without --keep-journal', async () => {
    const dir = await learned(200, { keepJournal: false })
    const report: AuditReport & { clean: boolean } = await admbJson(['audit', '--complete', '--dir', dir])
    assert.ok(report.clean)
    // Records of the last 16,384 updates are kept in any case.
    assert.equal(report.peers[0].journalWhole, true)
  })

  it('rejects missing, empty and repeated directories', async () => {
    for (const [args, message] of [
      [[], /give the --dir of each stopped peer/],
      [['--dir', join(folder, 'none')], /ERR_/]
    ] as const) {
      const { code, stderr } = await admb(['audit', ...args])
      assert.notEqual(code, 0)
      assert.match(stderr, message)
    }
  })
})

/** State directories of peers with float32 sums, which keep them or are converted to integer sums. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { sizeOf } from '../../../src/admb/core/journal.js'
import type { AuditReport } from '../../../src/peer/audit.js'
import { admb, admbJson } from '../../support/admb-command.js'
import { agree, type PeerProcess, PeerProcesses, until } from '../../support/peer-processes.js'

const PEERS = 3
/** Rows of each peer. */
const ROWS = 1200

describe('a state directory with float32 sums', function () {
  this.timeout(180_000)
  const processes = new PeerProcesses()
  afterEach(() => processes.stop())

  async function start(peer: number, others: readonly PeerProcess[], ...options: string[]): Promise<PeerProcess> {
    const dir = join(await processes.scratch(), String(peer))
    const task = ['--data', 'digits', '--shard', `${peer + 1}/${PEERS}`, '--passes', '3', '--limit', String(ROWS)]
    const pace = ['--rate', '300', '--batch', '32', '--period', '40,carry=1500', '--keep-journal']
    const peers = others.flatMap(({ latest }) => ['--peer', latest.addresses[0]])
    return processes.start(...task, ...pace, '--dir', dir, ...peers, ...options).ready()
  }

  async function startAll(...options: string[]): Promise<PeerProcess[]> {
    const started: PeerProcess[] = []
    for (let peer = 0; peer < PEERS; peer++) started.push(await start(peer, started, ...options))
    return started
  }

  const logged = ({ logs }: PeerProcess, text: RegExp) => logs.some(({ msg }) => text.test(msg))

  it('is converted by --sums lattice, and no input is lost or used twice', async () => {
    const exact = await startAll('--sums', 'exact')
    await until('updates', () => exact.every(({ latest }) => latest.predictor.updates > 15))
    // One of them stops, the others are killed with sums on their way.
    assert.equal(await exact[0].stop(), 0)
    const { predictor } = exact[0].latest
    await Promise.all(exact.slice(1).map(peer => peer.stop('SIGKILL')))
    const dirs = await Promise.all(
      [0, 1, 2].map(async peer => ['--dir', join(await processes.scratch(), String(peer))])
    )
    const before: AuditReport = await admbJson(['audit', ...dirs.flat()])
    assert.deepEqual(before.violations, [])

    const [first] = [await start(0, [], '--sums', 'lattice')]
    assert.ok(logged(first, /the state in .* is converted to lattice sums$/))
    // The first status may be that of a later predictor.
    if (first.latest.predictor.updates === predictor.updates) assert.deepEqual(first.latest.predictor, predictor)
    const second = await start(1, [first], '--sums', 'lattice')
    const third = await start(2, [first, second], '--sums', 'lattice')
    const all = [first, second, third]
    await until('the neighbours are linked', () => all.every(({ latest }) => latest.neighbours.length > 0))
    await until('the streams have ended', () => all.every(({ latest }) => latest.ended), 60_000)
    await until('all hold the same predictor', () => agree(all), 60_000)
    for (const peer of all) assert.equal(await peer.stop(), 0, peer.stderr)
    assert.deepEqual(processes.equivocations, [])

    const report: AuditReport = await admbJson(['audit', ...dirs.flat()])
    assert.deepEqual(report.violations, [])
    assert.ok(report.lineage.whole && report.peers.every(({ journalWhole }) => journalWhole))
    assert.ok(report.predictor.updates > before.predictor.updates)
    const runs = report.peers.flatMap(one => one.runs)
    assert.ok(runs.every(({ twice, unused, unknown }) => [twice, unused, unknown].every(rows => rows.length === 0)))
    // Fewer gradients than a batch wait for the next inputs.
    const kept = runs.flatMap(({ used, doubt, deferred }) => [...used, ...doubt, ...deferred])
    assert.equal(sizeOf(kept), PEERS * ROWS)
    const trained = await admbJson(['train', ...dirs[0], '--data', 'digits:test'])
    assert.ok(trained.predictor.updates > report.predictor.updates)
    const back = await admb(['peer', ...dirs[0], '--data', 'digits', '--batch', '32', '--sums', 'exact'])
    assert.equal(back.code, 2)
    assert.match(back.stderr, /has learned with integer sums, which cannot be undone: remove --sums exact/)
  })

  it('keeps them without --sums, and says how to convert it', async () => {
    const exact = await start(0, [], '--sums', 'exact')
    await until('updates', () => exact.latest.predictor.updates > 2)
    await exact.stop('SIGKILL')
    const again = await start(0, [])
    assert.ok(logged(again, /has exact sums, which this peer keeps: --sums lattice converts them to integers$/))
    const other = await start(1, [again], '--sums', 'lattice')
    const reason = /has sums exact, this peer lattice: start both with the same --sums/
    await until('the reason is logged', () => logged(other, reason))
  })

  it('of admb train is converted without a question, and back while no peer has learned', async () => {
    const dir = join(await processes.scratch(), '0')
    await admbJson(['train', '--data', 'digits', '--limit', '320', '--batch', '32', '--dir', dir])
    const idle = ['--data', 'digits', '--limit', '16', '--dir', dir, '--batch', '32']
    const converted = await processes.start(...idle).ready()
    assert.ok(logged(converted, /is converted to lattice sums$/))
    assert.equal(converted.latest.predictor.updates, 10)
    assert.equal(await converted.stop(), 0)
    const back = await processes.start(...idle, '--sums', 'exact').ready()
    assert.deepEqual(back.latest.predictor, converted.latest.predictor)
  })
})

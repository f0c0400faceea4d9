/** Peers that run DMB and MaWo-DMB: the bits of the simulator, a master that moves, and peers that wait for others by name. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { simulate } from '../../../sim/simulate.js'
import { parseScenario } from '../../../sim/testing/index.js'
import { createParser } from '../../../src/data/parsing.js'
import type { AuditReport } from '../../../src/peer/audit.js'
import { rowCopy } from '../../../src/peer/late-labels.js'
import { linearParts } from '../../../src/task/learning-parts.js'
import { type LinearSpec, parserOptions } from '../../../src/task/learning-spec.js'
import { createPeerTask } from '../../../src/task/task.js'
import { admbJson } from '../../support/admb-command.js'
import { agree, type PeerProcess, PeerProcesses, until } from '../../support/peer-processes.js'

const PEERS = 3
const DIMENSION = 6
const BATCH = 12

/** Lines of LIBSVM, of two classes that a line separates, with some noise. */
function linesOf(count: number): string[] {
  let state = 1
  const next = () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0
    return state / 2 ** 32 - 0.5
  }
  return Array.from({ length: count }, () => {
    const values = Array.from({ length: DIMENSION }, () => Number(next().toFixed(3)))
    const label = values[0] + values[1] - values[2] + 0.2 * next() > 0 ? 1 : -1
    return `${label} ${values.map((value, i) => `${i + 1}:${value}`).join(' ')}\n`
  })
}

describe('peers with a master', function () {
  this.timeout(180_000)
  const processes = new PeerProcesses()
  afterEach(() => processes.stop())

  const linked = (peers: readonly PeerProcess[]) =>
    until('all are linked', () => peers.every(({ latest }) => latest.neighbours.length > 0))
  const task = ['--format', 'libsvm', '--model', 'logistic', '--dimension', String(DIMENSION)]
  const others = (peers: readonly PeerProcess[]) => peers.flatMap(({ latest }) => ['--peer', latest.addresses[0]])

  /** Digest of the last predictor of a simulated run on the same rows. */
  async function simulated(algorithm: string, nodes: number, lines: readonly string[]): Promise<[string, number]> {
    const options = { model: 'logistic', data: '-', format: 'libsvm', features: DIMENSION, batch: BATCH } as const
    const spec = (await createPeerTask(options)).spec as LinearSpec
    const { learner, recipe } = linearParts(spec)
    const rows = createParser('libsvm', parserOptions(spec)).push(Buffer.from(lines.join('')))
    let row = 0
    const inputs = {
      model: 'logistic' as const,
      dimension: spec.dimension,
      varies: true,
      next: () => rowCopy(rows, row++ % rows.size)
    }
    const scenario = { algorithm, topology: 'path', nodes, inputs: lines.length, batch: BATCH, interval: 10 }
    let last = { digest: '', updates: 0 }
    simulate(parseScenario({ ...scenario, latency: 0.1, period: 1, checks: true }, 'the test'), {
      inputs,
      learner,
      recipe,
      quiesce: true,
      observer: { onPredictorChange: (_time, _node, id) => (last = id) }
    })
    return [last.digest, last.updates]
  }

  it('dmb: computes the bits of the simulator', async () => {
    const lines = linesOf(9 * BATCH)
    const peers: PeerProcess[] = []
    for (let i = 0; i < PEERS; i++) {
      const options = ['--algorithm', 'dmb', '--batch', String(BATCH), '--period', '20', ...others(peers)]
      peers.push(await processes.start(...task, '--data', '-', ...options).ready())
    }
    await linked(peers)
    for (const [i, line] of lines.entries()) {
      // In the first batch, no peer has a share.
      if (i === BATCH) await until('an update', () => peers[0].latest.predictor.updates === 1)
      peers[i % PEERS].child.stdin?.write(line)
    }
    const [digest, updates] = await simulated('dmb-overlay', PEERS, lines)
    assert.equal(updates, 9)
    await until('all updates', () => peers.every(({ latest }) => latest.predictor.updates === updates))
    assert.ok(peers.every(({ latest }) => latest.predictor.digest === digest))
    const { master, algorithm, gradients } = peers[1].latest
    assert.deepEqual([master, algorithm], [peers[0].latest.id, 'dmb'])
    assert.equal(gradients.used, lines.length / PEERS)
  })

  it('mawo: computes the bits of the simulator with one stream, and other peers make no updates', async () => {
    const lines = linesOf(8 * BATCH)
    const options = ['--algorithm', 'mawo', '--batch', String(BATCH), '--period', '20']
    const master = await processes.start(...task, '--data', '-', ...options).ready()
    const worker = await processes.start(...task, '--data', '-', ...options, ...others([master])).ready()
    await linked([master, worker])
    for (const line of lines) master.child.stdin?.write(line)
    const [digest, updates] = await simulated('mawo-overlay', 1, lines)
    assert.equal(updates, 8)
    for (const { latest } of [master, worker]) assert.equal(latest.master, master.latest.id)
    await until('all updates', () => [master, worker].every(({ latest }) => latest.predictor.digest === digest))
    // A batch of the worker alone.
    for (const line of lines.slice(0, BATCH)) worker.child.stdin?.write(line)
    await until('an update', () => [master, worker].every(({ latest }) => latest.predictor.updates === updates + 1))
    assert.equal(worker.latest.predictor.origin, master.latest.id)
  })

  it('refuse peers of another algorithm, and log both', async () => {
    const start = (name: string, ...options: string[]) =>
      processes.start(...task, '--data', '-', '--algorithm', name, ...options).ready()
    const admb = await start('admb')
    const dmb = await start('dmb', ...others([admb]))
    const logs = ({ stderr }: PeerProcess) => /algorithm/.test(stderr) && /dmb/.test(stderr)
    await until('both log the difference', () => logs(dmb))
    assert.deepEqual(dmb.latest.neighbours, [])
  })

  for (const algorithm of ['mawo', 'dmb'] as const)
    it(`${algorithm}: the master is killed, and no gradient counts twice`, async () => {
      const dir = await processes.scratch()
      const dirs = Array.from({ length: PEERS }, (_, i) => ['--dir', join(dir, String(i))])
      const lines = linesOf(1500 * PEERS)
      const start = async (i: number, peers: readonly PeerProcess[]) => {
        const data = join(dir, `${i}.libsvm`)
        await writeFile(data, lines.slice(1500 * i, 1500 * (i + 1)).join(''))
        const options = ['--batch', String(BATCH), '--period', '20', '--rate', '150', '--keep-journal']
        const run = [...task, '--data', data, '--algorithm', algorithm, ...options, ...dirs[i], ...others(peers)]
        return processes.start(...run).ready()
      }
      const peers: PeerProcess[] = []
      for (let i = 0; i < PEERS; i++) peers.push(await start(i, peers))
      const [master, ...rest] = peers
      await linked(peers)
      await until('updates with gradients of all', () =>
        peers.every(({ latest }) => latest.predictor.updates > 5 && latest.gradients.used > 20)
      )
      assert.ok(peers.every(({ latest }) => latest.master === master.latest.id))
      await master.stop('SIGKILL')
      const { updates } = rest[0].latest.predictor
      const other = () => rest.find(({ latest }) => rest.every(each => each.latest.master === latest.id))
      await until('another master', () => other() !== undefined)
      if (algorithm === 'mawo')
        await until('updates of the other master', () => rest[0].latest.predictor.updates > updates + 5)
      else {
        await until('the wait for the old one', () => other()?.latest.waitsFor?.join() === master.latest.id)
        const line = `waits for gradients of ${master.latest.id}`
        await until('a line about it', () => rest.some(({ stderr }) => stderr.includes(line)))
      }
      const back = await start(0, rest)
      const all = [back, ...rest]
      await until('all streams have ended', () => all.every(({ latest }) => latest.ended), 90_000)
      await until('all hold the same predictor', () => agree(all))
      for (const peer of all) assert.equal(await peer.stop(), 0, peer.stderr)
      assert.deepEqual(processes.equivocations, [])
      const report: AuditReport = await admbJson(['audit', ...dirs.flat()])
      assert.deepEqual(report.violations, [])
      const runs = report.peers.flatMap(one => one.runs)
      assert.ok(runs.every(({ twice, unused, unknown }) => [twice, unused, unknown].every(list => list.length === 0)))
    })
})

/** Peers with differential privacy: they learn together, their budget survives kills, and no input is used twice. */
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Random } from '../../../sim/engine/random.js'
import type { PeerStatus } from '../../../src/peer/index.js'
import { admb } from '../../support/admb-command.js'
import { type PeerProcess, PeerProcesses, until } from '../../support/peer-processes.js'

const PROGRAM = fileURLToPath(new URL('../../support/counting-peer.js', import.meta.url))
const DP = 'epsilon=4,delta=1e-6,clip=1'
const PLUGIN = `
const unit = { classifies: false, value: () => 0, slope: () => -1 }
const add = () => ({ step: ({ parameters }, sum) => ({
  parameters: parameters.map((block, b) => block.map((value, i) => value - sum[b][i])), state: [] }) })
export const plugin = { losses: { count: unit }, rules: { add } }
`

interface CountingPeer {
  readonly child: ChildProcess
  readonly url: string
}

/** Rows of two classes. */
function separable(rows: number, seed: number): string {
  const random = new Random(seed)
  const row = () => {
    const [a, b] = [random.normal(), random.normal()]
    return `${Number(a > b)} 1:${a.toFixed(3)} 2:${b.toFixed(3)}\n`
  }
  return Array.from({ length: rows }, row).join('')
}

describe('peers with differential privacy', function () {
  this.timeout(180_000)
  const processes = new PeerProcesses()
  const children: ChildProcess[] = []
  let folder = ''
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'admb-test-'))
  })
  afterEach(async () => {
    for (const child of children.splice(0)) child.kill('SIGKILL')
    await processes.stop()
    await rm(folder, { recursive: true, force: true })
  })

  const start = (index: number, ...more: string[]): Promise<PeerProcess> => {
    const [data, dir] = [join(folder, `${index}.svm`), join(folder, `state-${index}`)]
    return processes.start('--data', data, '--dir', dir, '--dimension', '2', '--batch', '256', ...more).ready()
  }
  const said = ({ logs }: PeerProcess, text: string) => logs.filter(({ msg }) => msg.includes(text)).length

  it('learn together, show their budget, and learn no more when it is spent', async () => {
    await writeFile(join(folder, '0.svm'), separable(4000, 0))
    const rows = ['--data', '-', '--format', 'libsvm', '--dimension', '2', '--dir', join(folder, 'state-1')]
    const second = await processes.start(...rows, '--batch', '256', '--dp', DP, '--rate', '1500').ready()
    const [address] = second.latest.addresses
    const first = await start(0, '--dp', DP, '--rate', '1500', '--passes', '2', '--peer', address)
    await until('a link', () => second.latest.neighbours.length > 0)
    second.child.stdin?.end(separable(4000, 1))
    await until('the end of both streams', () => [first, second].every(({ latest }) => latest.ended), 60_000)
    assert.equal(first.latest.inputs, 4000, 'the second pass is not learned')
    assert.deepEqual(first.latest.privacy, {
      ...{ epsilon: 4, delta: 1e-6, clip: 1, releases: 1, released: 1, exhausted: true },
      spent: first.latest.privacy?.spent
    })
    assert.ok(Math.abs((first.latest.privacy?.spent ?? 0) - 4) < 1e-6)
    assert.equal(said(first, 'the privacy budget is spent'), 1)
    assert.equal(second.latest.privacy?.exhausted, false)
    await until('a common predictor', () => first.latest.predictor.digest === second.latest.predictor.digest)
    assert.ok(first.latest.updates > 20 && first.latest.adopted + second.latest.adopted > 0)
    const { recent = [] } = second.latest.metrics ?? {}
    assert.ok((recent[0].accuracy ?? 0) > 0.8, `accuracy ${recent[0].accuracy}`)

    const { http } = first.latest
    const headers = { 'content-type': 'application/x-ndjson' }
    const post = (path: string, body: string) => fetch(`${http}/${path}`, { method: 'POST', headers, body })
    assert.equal((await post('predict', '{"features": [1, -1]}\n')).status, 200)
    const refused = await post('learn', '{"label": 1, "features": [1, -1]}\n')
    assert.equal(refused.status, 400)
    assert.match(await refused.text(), /budget of this peer is spent.*ERR_PRIVACY_SPENT/)
    assert.match(await (await fetch(`${http}/metrics`)).text(), /^admb_privacy_exhausted 1$/m)
    // No loss has left the first peer.
    interface Row {
      readonly id: string
      readonly inputs: number
      readonly loss?: number
    }
    let row: Row | undefined
    await until('the last status of the first peer is known to the second', async () => {
      const response = await fetch(`${second.latest.http}/peers`)
      const { peers } = (await response.json()) as { peers: readonly Row[] }
      row = peers.find(({ id }) => id === first.latest.id)
      return row?.inputs === 4000
    })
    assert.equal(row?.loss, undefined)
  })

  it('get no budget back by a kill, and use no input twice', async () => {
    const rows = 3000
    await writeFile(join(folder, 'count.mjs'), PLUGIN)
    const text = Array.from({ length: rows }, (_, row) => `1 ${row + 1}:1\n`).join('')
    await writeFile(join(folder, '0.svm'), text)
    const start = async (more: object = {}): Promise<CountingPeer> => {
      const options = {
        plugin: join(folder, 'count.mjs'),
        data: join(folder, '0.svm'),
        dimension: rows + 1,
        dir: join(folder, 'state'),
        rate: 400,
        batch: 64,
        // The parameters are counts, and the noise of all segments together is far below 1.
        sums: 'exact',
        dp: { epsilon: 1e8, delta: 1e-6, clip: 1 },
        ...more
      }
      const child = fork(PROGRAM, [JSON.stringify(options)], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
      children.push(child)
      const line = await new Promise<string>((resolve, reject) => {
        child.stdout?.once('data', (text: Buffer) => resolve(text.toString()))
        child.once('exit', code => reject(new Error(`the peer ended with code ${code}`)))
      })
      return { child, ...JSON.parse(line) }
    }
    const status = async ({ url }: CountingPeer) => (await (await fetch(`${url}/status`)).json()) as PeerStatus
    const kill = async ({ child }: CountingPeer) => {
      const exit = new Promise(resolve => child.once('exit', resolve))
      child.kill('SIGKILL')
      await exit
    }
    const uses = async ({ url }: CountingPeer): Promise<Float32Array> => {
      const bytes = new Uint8Array(await (await fetch(`${url}/predictor`)).arrayBuffer())
      const length = Number(new DataView(bytes.buffer).getBigUint64(0, true))
      return new Float32Array(bytes.slice(8 + length).buffer, 0, rows + 1).map(Math.round)
    }
    const assertOnce = (found: Float32Array) => {
      const wrong = found.findIndex((count, row) => row > 0 && count !== 0 && count !== 1)
      assert.equal(wrong, -1, `input ${wrong} is used ${found[wrong]} times`)
    }
    let peer = await start()
    let before = 0
    for (let killed = 0; killed < 3; killed++) {
      await until('more inputs', async () => {
        const { inputs, ended } = await status(peer)
        return ended || inputs > before + 300
      })
      before = (await status(peer)).inputs
      await kill(peer)
      peer = await start()
      assertOnce(await uses(peer))
    }
    await until('the end of the file', async () => (await status(peer)).ended, 60_000)
    const { released, exhausted } = (await status(peer)).privacy ?? {}
    assert.deepEqual([released, exhausted], [1, false], 'the pass went on after each kill')
    const found = await uses(peer)
    assertOnce(found)
    const used = found.slice(1).reduce((sum, count) => sum + count, 0)
    assert.ok(used > rows / 2, `${used} inputs are used`)
    await kill(peer)
    const copy = join(folder, 'copy.svm')
    await writeFile(copy, text)
    peer = await start({ data: copy })
    await until('the budget is spent', async () => (await status(peer)).privacy?.exhausted === true)
    assertOnce(await uses(peer))
    assert.equal((await status(peer)).ended, true)
  })

  it('are refused where the guarantee would not hold, in a line that says what to do', async () => {
    await writeFile(join(folder, '0.svm'), separable(50, 1))
    const dir = join(folder, 'state')
    const common = ['peer', '--data', join(folder, '0.svm'), '--dimension', '2', '--listen', '/ip4/127.0.0.1/tcp/0']
    const refusal = async (...args: string[]) => {
      const { code, stderr } = await admb([...common, ...args])
      assert.notEqual(code, 0)
      assert.equal(stderr.trim().split('\n').length, 1, stderr)
      return stderr
    }
    assert.match(await refusal('--dp', DP), /give dir \(--dir\)/)
    assert.match(await refusal('--dp', 'epsilon=1'), /delta must be a number/)
    assert.match(await refusal('--dp', DP, '--dir', dir, '--local-steps', '4'), /remove --dp or --local-steps/)
    assert.match(await refusal('--dp', DP, '--dir', dir, '--predict-with', 'ahead'), /remove --dp or --predict-with/)
    assert.match(await refusal('--dp', DP, '--dir', dir, '--model', 'mlp'), /use a linear model/)

    const used = join(folder, 'used')
    const peer = await processes.start(...common.slice(1), '--dir', used, '--dp', DP, '--batch', '8').ready()
    await until('the end of the file', () => peer.latest.ended)
    assert.equal(await peer.stop(), 0)
    const others = ['--dir', used, '--batch', '8']
    assert.match(
      await refusal(...others, '--dp', 'epsilon=5,delta=1e-6,clip=1'),
      /give --dp with these values, or a new --dir/
    )
    assert.match(await refusal(...others), /give --dp epsilon=4,delta=0\.000001,clip=1, or another --dir/)
    const trained = await admb(['train', '--data', join(folder, '0.svm'), '--dir', used])
    assert.match(trained.stderr, /protects its inputs \(--dp\)/)
    const open = join(folder, 'open')
    const plain = await processes.start(...common.slice(1), '--dir', open, '--batch', '8').ready()
    await until('the end of the file', () => plain.latest.ended)
    assert.equal(await plain.stop(), 0)
    assert.match(await refusal('--dir', open, '--batch', '8', '--dp', DP), /has learned inputs without --dp/)
  })
})

/** Peers with `--store disk`: they learn the same as others, also with them and after a kill. Skipped on other systems than Linux. */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readSafetensors } from '../../../src/nn/weights/safetensors.js'
import { agree, type PeerProcess, PeerProcesses, until } from '../../support/peer-processes.js'

/** Some 300,000 weights. */
const MODEL = 'model: mlp\nhidden: [400]\n'

describe('peers with --store disk', function () {
  this.timeout(120_000)
  const processes = new PeerProcesses()
  let at = (_name: string): string => ''

  before(function () {
    if (process.platform !== 'linux') this.skip()
  })
  beforeEach(async () => {
    const scratch = await processes.scratch()
    at = name => join(scratch, name)
    await writeFile(at('large.yaml'), MODEL)
  })
  afterEach(() => processes.stop())

  function start(name: string, store: string, ...more: string[]): Promise<PeerProcess> {
    const data = ['--data', 'digits', '--model', at('large.yaml'), '--rule', 'adam']
    return processes.start(...data, '--name', name, '--dir', at(name), '--store', store, ...more).ready()
  }

  /** Bytes of its arrays in files of its state directory: other tests of the process may have arrays in others. */
  async function bytesInFiles({ pid }: { readonly pid?: number }, name: string): Promise<number> {
    const maps = await readFile(`/proc/${pid}/maps`, 'utf8')
    const ranges = maps.split('\n').filter(line => line.endsWith(`${at(name)}/arrays (deleted)`))
    return ranges.reduce((sum, line) => {
      const [from, to] = line
        .split(' ')[0]
        .split('-')
        .map(text => Number.parseInt(text, 16))
      return sum + to - from
    }, 0)
  }

  it('learn the same as peers with arrays in memory, to the last bit', async () => {
    // Each input is a batch, so that the order of additions does not depend on time.
    const alone = ['--shard', '1/150', '--passes', '1', '--batch', '1', '--sums', 'exact']
    const peers = await Promise.all([start('on disk', 'disk', ...alone), start('in memory', 'memory', ...alone)])
    await until('all rows are learned', () => peers.every(({ latest }) => latest.ended))
    const [onDisk, inMemory] = peers.map(({ latest }) => latest.predictor)
    assert.ok(onDisk.updates > 50)
    assert.deepEqual([onDisk.updates, onDisk.digest], [inMemory.updates, inMemory.digest])
    assert.ok((await bytesInFiles(peers[0].child, 'on disk')) > 5e6)
    assert.equal(await bytesInFiles(peers[1].child, 'in memory'), 0)
  })

  it('learn with others, and go on after a kill', async () => {
    const shared = ['--passes', '1', '--rate', '10', '--batch', '4']
    const other = await start('other', 'memory', '--shard', '1/150', ...shared)
    const join = ['--shard', '2/150', ...shared, '--peer', other.latest.addresses[0]]
    const killed = await start('killed', 'disk', ...join)
    await until('it has learned', () => killed.latest.inputs > 10 && killed.latest.predictor.updates > 2)
    await killed.stop('SIGKILL')
    const again = await start('killed', 'disk', ...join)
    assert.equal(again.latest.incarnation, 2)
    await until(
      'both have learned their rows, and have one predictor',
      () => [other, again].every(({ latest }) => latest.ended) && agree([other, again])
    )
    assert.ok((await bytesInFiles(again.child, 'killed')) > 5e6)
    assert.equal(await again.stop(), 0)
    const last = await start('killed', 'disk', ...join)
    assert.deepEqual(last.latest.predictor, again.latest.predictor, 'its last checkpoint is restored')
    assert.deepEqual(processes.equivocations, [])
  })

  it('release their arrays when they stop, in a process that goes on', async () => {
    const { createPeer } = await import('../../../src/index.js')
    const options = {
      data: 'digits',
      model: { model: 'mlp', hidden: [400] },
      dir: at('library'),
      store: 'disk'
    } as const
    const peer = await createPeer({ ...options, listen: ['/ip4/127.0.0.1/tcp/0'] })
    assert.ok((await bytesInFiles(process, 'library')) > 5e6)
    await peer.stop()
    await until('the thread has ended', async () => (await bytesInFiles(process, 'library')) === 0, 10_000)
  })

  it('serve the predictor for download piece by piece, while they learn', async () => {
    await writeFile(at('wide.yaml'), 'model: mlp\nhidden: [1100, 1100]\n')
    const model = ['--data', 'digits', '--model', at('wide.yaml'), '--rate', '100', '--batch', '8']
    const peer = await processes
      .start(...model, '--dir', at('served'), '--store', 'disk', '--http', '127.0.0.1:0')
      .ready()
    const download = () => fetch(`${peer.latest.http}/predictor`)
    let [slow, fast] = await Promise.all([download(), download()])
    while (slow.headers.get('etag') !== fast.headers.get('etag')) {
      await Promise.all([slow.body?.cancel(), fast.body?.cancel()])
      ;[slow, fast] = await Promise.all([download(), download()])
    }
    const bytes = Buffer.from(await fast.arrayBuffer())
    assert.equal(bytes.length, Number(fast.headers.get('content-length')))
    const { updates } = peer.latest.predictor
    await until('the predictor has been updated', () => peer.latest.predictor.updates > updates)
    assert.ok(Buffer.from(await slow.arrayBuffer()).equals(bytes))
    const file = at('served.safetensors')
    await writeFile(file, bytes)
    assert.deepEqual(readSafetensors(file).get('hidden1.kernel')?.shape, [1100, 1100])
  })

  it('say in one line that they need a directory', async () => {
    const peer = processes.start('--data', 'digits', '--store', 'disk')
    assert.equal(await peer.exit, 2)
    assert.match(peer.stderr, /store disk \(--store disk\) keeps arrays in the state directory: give dir \(--dir\)/)
  })
})

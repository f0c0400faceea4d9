/** How a peer stops: on a signal, with its state stored, or on an error, with one line on stderr. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { Level } from 'level'
import { parseSpec } from '../../../src/peer/index.js'
import { Store } from '../../../src/storage/index.js'
import { admb } from '../../support/admb-command.js'
import { LEARNERS, MAIN, PeerProcesses, until } from '../../support/peer-processes.js'

const ROWS = 500

const LOCATIONS = ['--listen', '/ip4/127.0.0.1/tcp/0', '--http', '127.0.0.1:0']

/** LIBSVM rows with two features. */
function rows(count: number): string {
  return Array.from({ length: count }, (_, i) => `${i % 2} 1:${i % 7} 2:${(i % 3) - 1}\n`).join('')
}

describe('a peer stops', function () {
  this.timeout(120_000)
  const processes = new PeerProcesses()
  let dir: string
  beforeEach(async () => {
    dir = await processes.scratch()
  })
  afterEach(() => processes.stop())

  const libsvm = ['--format', 'libsvm', '--dimension', '2', '--batch', '8']

  async function checkpoint(state: string) {
    const store = await Store.open(state)
    const model = parseSpec((await store.model()) as string)
    const stored = await store.checkpoint()
    await store.close()
    return { model, progress: stored?.progress as { inputs: number; position: number } }
  }

  for (const [kind, signal] of (['SIGINT', 'SIGTERM'] as const).entries()) {
    const learner = LEARNERS[kind]
    it(`with ${learner} on ${signal}, with exit code 0, a last object, and all inputs stored`, async () => {
      const state = join(dir, 'state')
      const args = ['--data', 'digits', '--rate', '700', '--batch', '16', '--dir', state]
      args.push(...(await processes.modelOptions(learner)))
      const peer = await processes.start(...args).ready()
      await until('the first update', () => peer.latest.updates > 0)
      assert.equal(await peer.stop(signal), 0, peer.stderr)
      const { inputs, http, addresses } = peer.latest
      assert.ok(http && addresses.length === 1)
      assert.deepEqual(peer.strayLines, [])
      const { model, progress } = await checkpoint(state)
      assert.equal(model.batch, 16)
      assert.equal(progress.inputs, inputs)
      assert.equal(progress.position, inputs)
    })
  }

  for (const learner of LEARNERS)
    it(`with ${learner} and resumes at its position in the stream: each row is learned once`, async () => {
      const data = join(dir, 'rows')
      await writeFile(data, rows(ROWS))
      const args = ['--data', data, ...libsvm, '--dir', join(dir, 'state'), '--rate', '900']
      args.push(...(await processes.modelOptions(learner)))
      let before = 0
      for (let run = 1; ; run++) {
        const peer = await processes.start(...args).ready()
        assert.equal(peer.latest.incarnation, run)
        // The peer learns while HTTP starts.
        assert.ok(peer.latest.inputs >= before, `${peer.latest.inputs} inputs after ${before}`)
        await until('the peer continues', () => peer.latest.inputs > before || peer.latest.ended)
        assert.equal(await peer.stop(), 0, peer.stderr)
        before = peer.latest.inputs
        if (peer.latest.ended) break
        assert.ok(before <= ROWS)
      }
      assert.equal(before, ROWS)
    })

  for (const learner of LEARNERS)
    it(`with ${learner} after the end of standard input`, async () => {
      const peer = processes.start(
        '--data',
        '-',
        '--classes',
        '2',
        ...libsvm,
        ...(await processes.modelOptions(learner))
      )
      await peer.ready()
      peer.child.stdin?.write(rows(40))
      await until('the peer learns inputs as they arrive', () => peer.latest.inputs === 40)
      peer.child.stdin?.end(`1 1:nan\nnonsense\n0 1:inf\n${rows(10)}`)
      await until('the input has ended', () => peer.latest.ended)
      assert.equal(peer.latest.inputs, 50)
      assert.equal(peer.latest.skipped, 3)
      assert.ok(Number.isFinite(peer.latest.averageLoss))
      const warnings = peer.logs.map(({ msg }) => msg).filter(line => line.startsWith('<stdin>:'))
      assert.equal(warnings.length, 3, peer.stderr)
      assert.match(warnings[0], /^<stdin>:41:5: /)
      assert.equal(await peer.stop(), 0)
    })

  it('while standard input is still open', async () => {
    const peer = await processes.start('--data', '-', ...libsvm).ready()
    assert.equal(await peer.stop(), 0)
  })

  for (const learner of LEARNERS)
    it(`with ${learner} on damaged data: exit code 1, one line, and the learned state is stored`, async () => {
      const data = join(dir, 'rows.gz')
      const whole = gzipSync(rows(4000))
      await writeFile(data, whole.subarray(0, whole.length - 100))
      const state = join(dir, 'state')
      const peer = processes.start(
        '--data',
        data,
        ...libsvm,
        '--dir',
        state,
        '--log-level',
        'silent',
        ...(await processes.modelOptions(learner))
      )
      assert.equal(await peer.exit, 1)
      assert.match(
        peer.stderr,
        /^admb: \S+rows\.gz: the gzip data ends early: download the file again \(ERR_INPUT_GZIP\)\n$/
      )
      const { progress } = await checkpoint(state)
      assert.ok(progress.inputs > 1000)
    })

  it('when the disk is full, before it sends anything that is not stored', async function () {
    if (process.platform === 'win32') return this.skip()
    // A limit of the file size has the same effect as a full disk.
    const args = ['peer', '--json', '--data', 'digits', '--passes', '1000', '--rate', '500', '--batch', '4']
    const locations = ['--listen', '/ip4/127.0.0.1/tcp/0', '--http', 'off', '--dir', join(dir, 'state')]
    const script = `trap '' XFSZ; ulimit -f 600; exec "$@"`
    const child = spawn('sh', ['-c', script, 'sh', process.execPath, MAIN, ...args, ...locations], {
      stdio: ['ignore', 'ignore', 'pipe']
    })
    let complaint = ''
    child.stderr.on('data', text => {
      complaint += text
    })
    const timer = setTimeout(() => child.kill('SIGKILL'), 60_000)
    const code = await new Promise(resolve => child.once('close', resolve))
    clearTimeout(timer)
    assert.equal(code, 1, complaint)
    const lines = complaint.trim().split('\n')
    assert.match(lines.at(-1) as string, /^admb: cannot write the state in .*: free space or correct its permissions/)
  })

  it('immediately if its state is in use, damaged, foreign, or of another model', async () => {
    const state = join(dir, 'state')
    const args = ['--data', 'digits', '--rate', '10', '--log-level', 'silent']
    const one = await processes.start(...args, '--dir', state).ready()
    const refused = async (pattern: RegExp, ...other: string[]) => {
      const task = other.includes('--data') ? args.slice(2) : args
      const { code, stdout, stderr } = await admb(['peer', '--json', ...LOCATIONS, ...task, ...other])
      assert.equal(code, 1, stderr)
      assert.match(stderr, pattern)
      assert.equal(stderr.trim().split('\n').length, 1, stderr)
      assert.equal(stdout, '')
    }
    await refused(/state is in use by another admb process/, '--dir', state)
    await one.stop()
    await refused(/batch 128 stored, 64 given/, '--dir', state, '--batch', '64')
    const database = new Level(join(state, 'db'))
    const [block] = await database.keys({ gt: 'block/', lt: 'block0' }).all()
    await database.del(block)
    await database.close()
    await refused(/is damaged or not from admb \(block 0 of its predictor is missing\)/, '--dir', state)
    await writeFile(join(state, 'db', 'CURRENT'), 'nonsense')
    await refused(/the state in .* is damaged or not from admb/, '--dir', state)
    await mkdir(join(dir, 'home'))
    await writeFile(join(dir, 'home', 'thesis.txt'), '')
    await refused(/contains thesis\.txt but no admb\.json/, '--dir', join(dir, 'home'))
    await refused(/cannot write the state in/, '--dir', join(dir, 'home', 'thesis.txt', 'state'))
    await rm(state, { recursive: true })
    await refused(/no such file: check the path/, '--data', join(dir, 'missing.svm'), ...libsvm)
    await assert.rejects(readFile(join(state, 'admb.json')), 'a peer that cannot start creates no files')
  })

  it('in the middle of a request, and answers how many of its inputs were learned', async () => {
    const state = join(dir, 'asked')
    const peer = await processes.start('--dimension', '2', '--batch', '8', '--dir', state).ready()
    const size = 700_000
    const answer = fetch(`${peer.latest.http}/learn`, {
      method: 'POST',
      body: rows(size),
      headers: { 'content-type': 'text/x-libsvm' }
    })
    await until('the first inputs are learned', async () => (await peer.fetchStatus()).inputs > 0)
    assert.equal(await peer.stop(), 0, peer.stderr)
    const { status } = await answer
    const { code, learned, remedy } = (await (await answer).json()) as Record<string, unknown>
    assert.deepEqual([status, code, remedy], [503, 'ERR_PARTLY_LEARNED', 'send the others to another peer, or later'])
    assert.ok(Number(learned) > 0 && Number(learned) < size)
    assert.equal((await checkpoint(state)).progress.inputs, learned)
    const again = await processes.start('--dimension', '2', '--batch', '8', '--dir', state).ready()
    assert.equal((await again.fetchStatus()).inputs, learned)
  })

  it('immediately if a given port is in use', async () => {
    const server: Server = createServer()
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    try {
      const args = ['--data', 'digits', '--log-level', 'silent']
      const listening = processes.start(...args, '--listen', `/ip4/127.0.0.1/tcp/${port}`)
      assert.equal(await listening.exit, 1)
      assert.match(listening.stderr, /^admb: \/ip4\/127\.0\.0\.1\/tcp\/\d+ is in use: stop the process .*\n$/)
      const serving = processes.start(...args, '--http', `127.0.0.1:${port}`)
      assert.equal(await serving.exit, 1)
      assert.match(serving.stderr, /^admb: cannot serve HTTP on 127\.0\.0\.1:\d+: the port is in use: .*\n$/)
    } finally {
      server.close()
    }
  })
})

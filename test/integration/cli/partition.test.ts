/** `admb train` divides a network among processes, and learns the bits of one process. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { admb, type CommandResult, MAIN } from '../../support/admb-command.js'
import { until } from '../../support/peer-processes.js'
import { scratchFolder } from '../../support/scratch.js'

const DATA = ['--data', 'digits', '--model', 'mlp', '--backend', 'cpu', '--limit', '320', '--json']

describe('admb train on several hosts', function () {
  this.timeout(240_000)
  const folder = scratchFolder()
  const workers: ChildProcess[] = []
  let token: string
  let port: number
  let digest: string
  before(async () => {
    token = join(folder, 'worker.token')
    await writeFile(token, 'a-token-of-a-device-worker-1', { mode: 0o600 })
    port = await freePort()
    digest = digestOf(await admb(['train', ...DATA, '--schedule', 'l2l-p,microbatch=8']))
  })
  afterEach(() => {
    for (const worker of workers.splice(0)) worker.kill('SIGKILL')
  })

  function startWorker(...more: string[]): ChildProcess {
    const args = ['worker', '--peer', `/ip4/127.0.0.1/tcp/${port}`, '--token', token, '--backend', 'cpu', ...more]
    const worker = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'ignore', 'pipe'] })
    workers.push(worker)
    return worker
  }

  function digestOf({ code, stdout, stderr }: CommandResult): string {
    assert.equal(code, 0, stderr)
    return JSON.parse(stdout).predictor.digest
  }

  const train = (level: number, hosts: number, ...more: string[]) =>
    admb([
      'train',
      ...DATA,
      '--schedule',
      `l2l-p,microbatch=8,zero=${level},hosts=${hosts},token=${token},port=${port}`,
      ...more
    ])

  it('learns the same bits at each level, with one worker or two, which join run after run', async () => {
    startWorker()
    assert.equal(digestOf(await train(1, 2)), digest)
    startWorker()
    for (const level of [2, 3]) assert.equal(digestOf(await train(level, 3)), digest)
  })

  it('ends when a worker is killed, and the directory stays as it was', async () => {
    const dir = join(folder, 'state')
    const [first] = [startWorker(), startWorker()]
    let text = ''
    first.stderr?.on('data', bytes => {
      text += bytes
    })
    assert.equal(digestOf(await train(3, 3, '--dir', dir)), digest)
    const run = train(3, 3, '--dir', dir, '--passes', '1000')
    await until('a worker that holds layers again', () => text.split('holds').length > 2)
    // Steps follow within this time.
    setTimeout(() => first.kill('SIGKILL'), 500)
    const { code, stderr } = await run
    assert.equal(code, 1)
    // If it was killed before the first step, the message does not mention the directory.
    assert.match(stderr, /a host is gone with its part of the network .*: start it and this command again/)
    assert.match(stderr, /ERR_HOST_LOST/)
    const { stdout } = await admb(['eval', '--dir', dir, '--data', 'digits:test', '--backend', 'cpu', '--json'])
    assert.equal(JSON.parse(stdout).predictor.digest, digest)
  })

  it('is computed by the devices of all hosts, each of which owns layers', async () => {
    for (let n = 0; n < 2; n++) startWorker()
    const { code, stdout, stderr } = await train(2, 3, '--workers', '3')
    assert.equal(code, 0, stderr)
    const { relay, averageLoss } = JSON.parse(stdout)
    assert.equal(relay.workers, 3)
    assert.ok(averageLoss < 2.31, `a loss of ${averageLoss}`)
  })

  it('loses a step, and no layers, when the device of a host fails', async () => {
    startWorker('--device-memory', '1KB')
    const { code, stdout, stderr } = await train(1, 2, '--workers', '2')
    assert.equal(code, 0, stderr)
    const { relay } = JSON.parse(stdout)
    assert.deepEqual([relay.workers, relay.lostSteps], [1, 1])
  })

  it('refuses what cannot be divided, before it waits for hosts', async () => {
    const hosts = `zero=1,hosts=2,token=${token},port=${port}`
    for (const [args, message] of [
      [['--schedule', 'l2l-p,zero=1'], /zero=1, 2 or 3, hosts=N and token=FILE together/],
      [['--schedule', `l2l-p,${hosts}`, '--rule', 'adamw,clip=1'], /zero needs a rule that steps layers independently/],
      [['--schedule', `l2l-p,${hosts}`, '--store', 'disk'], /a partition is in the memory of its hosts/],
      [['--schedule', `l2l-p,${hosts}`, '--model', 'linear'], /zero divides a network/]
    ] as const) {
      const { code, stderr } = await admb(['train', ...DATA, ...args])
      assert.notEqual(code, 0)
      assert.match(stderr, message)
    }
    const { stderr } = await admb(['peer', '--model', 'mlp', '--data', 'digits', '--schedule', `l2l-p,${hosts}`])
    assert.match(stderr, /peers exchange whole predictors, so each holds one: use zero with admb train/)
  })
})

/** A port that is free now. */
function freePort(): Promise<number> {
  return new Promise(resolve => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { readonly port: number }
      server.close(() => resolve(port))
    })
  })
}

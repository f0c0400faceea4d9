/** Device workers of other processes compute for a real peer, and their deaths cost it no input. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MAIN, PeerProcesses, until } from '../../support/peer-processes.js'

/** How the workers end, one after the other. A stopped one is silent. */
const SIGNALS = ['SIGKILL', 'SIGSTOP', 'SIGTERM'] as const
const TOKEN = 'a-token-of-a-device-worker-1'

describe('admb worker', function () {
  this.timeout(120_000)
  const processes = new PeerProcesses()
  const workers: ChildProcess[] = []
  afterEach(async () => {
    for (const worker of workers) worker.kill('SIGKILL')
    await processes.stop()
  })

  function startWorker(address: string, token: string): { readonly child: ChildProcess; log(): string } {
    const args = ['worker', '--json', '--peer', address, '--token', token, '--backend', 'cpu']
    const child = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
    workers.push(child)
    let text = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (bytes: Buffer) => {
        text += bytes
      })
    }
    return { child, log: () => text }
  }

  for (const [what, schedule, more] of [
    ['with a code of gradients', 'l2l', ',gradients=rank:4'],
    ['as a stage of a pipeline', '1f1b', '']
  ] as const) {
    it(`computes for a peer, ${what}, which loses no input when workers are killed`, async () => {
      const [token, other] = ['right', 'wrong'].map(name => `${name}.token`)
      const dir = await processes.scratch()
      const [file, wrong] = [join(dir, token), join(dir, other)]
      writeFileSync(file, TOKEN, { mode: 0o600 })
      writeFileSync(wrong, `${TOKEN}-of-another`, { mode: 0o600 })
      const execution = ['--backend', 'cpu', '--schedule', `${schedule},microbatch=8,token=${file}${more}`]
      const stream = ['--data', 'digits', '--passes', '60', '--rate', '600', '--batch', '64']
      const peer = await processes.start(...stream, '--model', 'mlp', ...execution).ready()
      const [address] = peer.latest.addresses
      const isLogged = (text: string, times: number) => () =>
        peer.logs.filter(({ msg }) => msg.includes(text)).length >= times

      const stranger = startWorker(address, wrong)
      await until('the refusal of a stranger', isLogged('its token is another', 1))
      await until('the reason at the stranger', () => stranger.log().includes('give the file of the peer'))
      stranger.child.kill('SIGKILL')

      for (let time = 1; time <= SIGNALS.length; time++) {
        const worker = startWorker(address, file)
        await until('a worker that has joined', isLogged('has joined: cpu', time))
        const { updates } = peer.latest.predictor
        await until('updates with the worker', () => peer.latest.predictor.updates > updates + 5)
        // A slow first step may leave it without a share for a while.
        await until('its share', () => (peer.latest.devices?.[1]?.share ?? 0) > 0)
        worker.child.kill(SIGNALS[time - 1])
        await until('the end of a worker', isLogged('has gone', time))
        if (time < SIGNALS.length) continue
        await until('the last line of the worker', () => worker.log().includes('"command":"worker"'))
        const { tasks } = JSON.parse(
          worker
            .log()
            .split('\n')
            .find(line => line.includes('"command"')) ?? '{}'
        )
        assert.ok(tasks > 0, worker.log())
      }
      const { updates } = peer.latest.predictor
      await until('updates without workers', () => peer.latest.predictor.updates > updates + 5)
      assert.equal(await peer.stop(), 0)
      const { gradients, discarded, skipped, averageLoss } = peer.latest
      assert.deepEqual([discarded, skipped], [0, 0])
      assert.ok(gradients.used > 0 && averageLoss < 2.2, `a loss of ${averageLoss} with ${gradients.used} gradients`)
      const faults = peer.logs.filter(
        ({ level, msg }) => level === 'error' || (level === 'warn' && !msg.includes('device worker'))
      )
      assert.deepEqual(faults, [])
    })
  }
})

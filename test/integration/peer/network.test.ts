/** Peers whose model is a network: they learn it together, store it, and reject peers with another one. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { admbJson } from '../../support/admb-command.js'
import { agree, PeerProcesses, until } from '../../support/peer-processes.js'

describe('peers with a network', function () {
  this.timeout(240_000)
  const processes = new PeerProcesses()
  afterEach(() => processes.stop())

  it('learn it together layer to layer, and store the same predictor', async () => {
    const dir = await processes.scratch()
    const model = join(dir, 'small.yaml')
    await writeFile(model, 'model: mlp\nhidden: [32]\n')
    const task = ['--data', 'digits', '--model', model, '--rate', '400', '--batch', '64', '--limit', '1500']
    task.push('--rule', 'adam,bits=8')
    const shared = ['--schedule', 'l2l,microbatch=8,workers=2']
    const first = await processes.start(...task, '--shard', '1/2', ...shared, '--dir', join(dir, 'a')).ready()
    const second = await processes
      .start(...task, '--shard', '2/2', '--schedule', 'stash=host', '--peer', first.latest.addresses[0])
      .ready()
    await until('both have read their streams', () => [first, second].every(({ latest }) => latest.ended), 60_000)
    await until('both hold the same predictor', () => agree([first, second]), 60_000)
    assert.ok(first.latest.predictor.updates > 10)
    assert.deepEqual(processes.equivocations, [])
    await first.stop()
    const { accuracy, predictor } = await admbJson(['eval', '--dir', join(dir, 'a'), '--data', 'digits:test'])
    assert.ok(accuracy > 0.6, `accuracy ${accuracy}`)
    assert.equal(predictor.digest, first.latest.predictor.digest)
  })

  for (const [kind, options] of [
    ['float32 sums', ['--sums', 'exact']],
    ['integer sums of local steps with momentum', ['--sums', 'lattice', '--local-steps', '8,momentum=0.5']],
    ['sums with a budget of bytes', ['--local-steps', '8,momentum=0.5,bytes=0.03']]
  ] as const)
    it(`exchange one that is larger than a fragment by ${kind}, also with a late joiner`, async () => {
      const dir = await processes.scratch()
      const model = join(dir, 'wide.yaml')
      await writeFile(model, 'model: mlp\nhidden: [400]\n')
      const task = ['--data', 'digits', '--model', model, '--rate', '200', '--batch', '128', ...options]
      const part = (shard: string) => ['--limit', '900', '--shard', shard]
      const first = await processes.start(...task, ...part('1/2')).ready()
      const second = await processes.start(...task, ...part('2/2'), '--peer', first.latest.addresses[0]).ready()
      await until('both have read their streams', () => [first, second].every(({ latest }) => latest.ended), 60_000)
      await until('both hold the same predictor', () => agree([first, second]), 60_000)
      assert.ok(first.latest.predictor.updates >= 5)
      const late = await processes.start(...task, '--limit', '64', '--peer', first.latest.addresses[0]).ready()
      await until(
        'the late joiner has caught up',
        () => late.latest.predictor.updates >= first.latest.predictor.updates,
        60_000
      )
      await until('all hold the same predictor', () => agree([first, second, late]), 60_000)
      assert.deepEqual(processes.equivocations, [])
      for (const peer of [first, second, late]) assert.equal(await peer.stop(), 0, peer.stderr)
    })

  it('reject a peer with another network, or with sums of another kind', async () => {
    const dir = await processes.scratch()
    const [model, otherModel] = [join(dir, 'one.yaml'), join(dir, 'other.yaml')]
    await writeFile(model, 'model: mlp\nhidden: [8]\n')
    await writeFile(otherModel, 'model: mlp\nhidden: [16]\n')
    const slow = ['--data', 'digits', '--rate', '20', '--batch', '16']
    const first = await processes.start(...slow, '--model', model).ready()
    for (const [options, reason] of [
      [['--model', otherModel], /has model mlp#\w+, this peer mlp#\w+: start both with the same --model/],
      [['--model', model, '--sums', 'exact'], /has sums lattice, this peer exact: start both with the same --sums/]
    ] as const) {
      const other = await processes.start(...slow, ...options, '--peer', first.latest.addresses[0]).ready()
      await until('the reason is logged', () => other.logs.some(({ msg }) => reason.test(msg)))
      assert.deepEqual(other.latest.neighbours, [])
    }
  })
})

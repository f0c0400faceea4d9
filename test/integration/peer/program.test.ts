/** Peers whose gradients a program in another process computes. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AuditReport } from '../../../src/peer/audit.js'
import { admb, admbJson } from '../../support/admb-command.js'
import { PeerProcesses, until } from '../../support/peer-processes.js'
import { ProgramClient } from '../../support/program-client.js'

const DIMENSION = 5
const START = Float32Array.from({ length: DIMENSION }, (_, i) => i / 8)
const TRUE = [1, -2, 0.5, 0, 3]
const INPUTS = 600
const BATCH = 16

/** The gradient of the squared loss of an input, whose features follow from its number. */
function gradient(weights: Float32Array, peer: number, number: number): { sum: Float32Array; loss: number } {
  const x = TRUE.map((_, i) => Math.sin((number + 1) * (i + 2) + peer))
  const error = x.reduce((sum, value, i) => sum + value * (weights[i] - TRUE[i]), 0)
  return { sum: Float32Array.from(x, value => 2 * error * value), loss: error * error }
}

/** Learns until `end`: first the inputs that have to be learned again. */
async function learn(client: ProgramClient, peer: number, end: number): Promise<void> {
  for (;;) {
    const isAgain = client.again[0] < client.again[1]
    const number = isAgain ? client.again[0] : client.next
    if (number >= end) return
    const { sum, loss } = gradient(client.parameters, peer, number)
    await client.add(number, 1, sum, loss)
  }
}

describe('a program that computes the gradients of a peer', function () {
  this.timeout(120_000)
  const processes = new PeerProcesses()
  afterEach(() => processes.stop())

  const options = (dir: string, ...others: string[]) => [
    ...['--learner', `external,socket=${dir}.s`, '--dir', dir, '--keep-journal'],
    ...['--batch', `${BATCH}`, '--rule', 'adam,step=0.05', '--period', '20,carry=500', ...others]
  ]

  it('learns with others, through the crash of a program and of a peer, with every input used once', async () => {
    const scratch = await processes.scratch()
    const dirs = ['0', '1'].map(name => join(scratch, name))
    const first = processes.start(...options(dirs[0]))
    const one = await ProgramClient.join(`${dirs[0]}.s`, START)
    await first.ready()
    const second = processes.start(...options(dirs[1], '--peer', first.latest.addresses[0]))
    let two = await ProgramClient.join(`${dirs[1]}.s`, START)
    await second.ready()
    await Promise.all([learn(one, 0, INPUTS / 3), learn(two, 1, INPUTS / 3)])

    // A slow program contributes, although the network makes several updates meanwhile.
    const slow = gradient(two.parameters, 1, two.next)
    await learn(one, 0, INPUTS / 2)
    assert.equal((await two.add(two.next, 1, slow.sum, slow.loss)).outcome, 0)
    two.close()
    two = await ProgramClient.join(`${dirs[1]}.s`, START)
    assert.equal(two.next, INPUTS / 3 + 1, 'the node knows which inputs its program has handed over')

    await first.stop('SIGKILL')
    // Without its program, a peer knows the model, and relays.
    const again = await processes.start(...options(dirs[0], '--peer', second.latest.addresses[0])).ready()
    await until('the problem is shown', async () => /no program/.test((await again.fetchStatus()).problem ?? ''))
    const back = await ProgramClient.join(`${dirs[0]}.s`, new Float32Array(DIMENSION))
    await Promise.all([learn(back, 0, INPUTS), learn(two, 1, INPUTS)])
    assert.equal((await again.fetchStatus()).problem, undefined)
    for (const client of [back, two]) client.bye()
    const peers = [again, second]
    await until('the peers agree, and no input is left', async () => {
      await Promise.all([learn(back, 0, INPUTS), learn(two, 1, INPUTS)])
      const held = await Promise.all(peers.map(async peer => (await peer.fetchStatus()).gradients.waiting))
      const replies = [await back.add(0, 0), await two.add(0, 0)]
      const isEmpty = replies.every(({ missing, again: [from, to] }) => missing === BATCH && from === to)
      return replies[0].digest === replies[1].digest && isEmpty && held.every(count => count === 0)
    })
    const average = await back.average()
    const errorOf = (weights: Float32Array) => weights.reduce((sum, weight, i) => sum + (weight - TRUE[i]) ** 2, 0)
    assert.ok(errorOf(average) < 0.2 * errorOf(START), `${average}`)
    assert.deepEqual(processes.equivocations, [])
    for (const peer of peers) assert.equal(await peer.stop(), 0, peer.stderr)
    const report = (await admbJson(['audit', ...dirs.flatMap(dir => ['--dir', dir])])) as AuditReport
    assert.deepEqual(report.violations, [])
    for (const { runs, unrecorded } of report.peers) {
      const used = runs.flatMap(run => run.used).reduce((sum, end, i) => sum + (i % 2 === 0 ? -end : end), 0)
      assert.equal(used, INPUTS, JSON.stringify(report.peers.map(({ runs: all }) => all)))
      assert.deepEqual([unrecorded, runs.flatMap(({ twice }) => twice)], [[], []])
    }
    back.close()
    two.close()
  })

  it('is told what is wrong with it, or with its gradients', async () => {
    const dir = join(await processes.scratch(), 'peer')
    const peer = processes.start(...options(dir))
    const socket = `${dir}.s`
    await assert.rejects(ProgramClient.join(socket, START, { version: 2 }), /the peer speaks version 1/)
    await assert.rejects(ProgramClient.join(socket, START, { blocks: [] }), /blocks/)
    const client = await ProgramClient.join(socket, START)
    await peer.ready()
    await assert.rejects(ProgramClient.join(socket, START), /a test has joined already/)

    const sum = new Float32Array(DIMENSION).fill(0.1)
    const { outcome, next, updates } = await client.add(0, 3, sum)
    assert.deepEqual([outcome, next, updates], [0, 3, 0])
    assert.equal((await client.add(0, 3, sum)).outcome, 2, 'the inputs were handed over before')
    assert.equal((await client.add(7, 3, sum)).outcome, 2, 'inputs are left out')
    assert.equal((await client.add(3, 1, new Float32Array(DIMENSION).fill(Number.NaN))).outcome, 3)
    assert.equal((await client.add(3, 1, sum, Number.POSITIVE_INFINITY)).outcome, 3)
    const old = client.generation
    for (let k = 0; k < 3; k++) await client.add(client.next, 16, sum)
    assert.equal((await client.add(client.next, 1, sum, 0.5, old)).outcome, 1, 'the gradients are stale')
    assert.deepEqual([(await client.add(0, 0)).next, client.again], [51, [0, 0]])

    const prediction = await fetch(`${peer.latest.http}/predict`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"features": [1]}'
    })
    assert.match(await prediction.text(), /a program has the model/)
    client.send(77)
    await assert.rejects(client.receive(1), /kind 77/)
    client.close()

    await assert.rejects(
      ProgramClient.join(socket, new Float32Array(DIMENSION + 1)),
      /"w" with 6 numbers, which the network does not learn/
    )
    await assert.rejects(ProgramClient.join(socket, START, { fingerprint: 'other' }), /its fingerprint is "other"/)
    const last = await ProgramClient.join(socket, START)
    assert.equal(last.next, 51)
    last.close()
    assert.equal(await peer.stop(), 0, peer.stderr)
  })

  it('starts from the same parameters as the network', async () => {
    const scratch = await processes.scratch()
    const [dir, other] = [join(scratch, '0'), join(scratch, '1')]
    const first = processes.start(...options(dir))
    const client = await ProgramClient.join(`${dir}.s`, START)
    await first.ready()
    const second = processes.start(...options(other, '--peer', first.latest.addresses[0]))
    await assert.rejects(ProgramClient.join(`${other}.s`, new Float32Array(DIMENSION)), /starts from other parameters/)
    assert.equal(await second.exit, 1)
    assert.match(second.stderr, /starts from other parameters than the network.*ERR_PROGRAM/)
    client.close()
  })

  it('listens only where a socket can be, and leaves none', async () => {
    const scratch = await processes.scratch()
    const file = join(scratch, 'model.pt')
    writeFileSync(file, 'weights')
    const refused = async (socket: string) => {
      const peer = processes.start('--learner', `external,socket=${socket}`)
      assert.equal(await peer.exit, 1)
      return peer.stderr
    }
    assert.match(await refused(file), /model.pt exists, and is no socket: give another path/)
    assert.equal(readFileSync(file, 'utf8'), 'weights')
    assert.match(await refused(scratch), /exists, and is no socket/)
    assert.match(await refused(join(scratch, 'missing', 's')), /cannot listen .*give another path/)
    assert.match(
      await refused(join(scratch, 'x'.repeat(100))),
      /path of a socket .* longer: give --learner external,socket=PATH/
    )
    const socket = join(scratch, 's')
    const waiting = processes.start('--learner', `external,socket=${socket}`)
    await until('it waits', () => existsSync(socket) && waiting.stderr.includes('waits for a program'))
    assert.match(await refused(socket), /another peer listens/)
    assert.equal(await waiting.stop(), 0, waiting.stderr)
    assert.ok(!existsSync(socket))
  })

  it('may not cut off its memory', async () => {
    const dir = join(await processes.scratch(), 'peer')
    const peer = processes.start(...options(dir))
    const client = await ProgramClient.join(`${dir}.s`, START)
    await peer.ready()
    client.truncate(100)
    await assert.rejects(client.add(0, 1), /its memory is shorter/)
    client.close()
    const next = await ProgramClient.join(`${dir}.s`, START)
    assert.equal(next.next, 0)
    next.close()
    assert.equal(await peer.stop(), 0, peer.stderr)
  })

  it('has the only model that its directory and its network are read with', async () => {
    const scratch = await processes.scratch()
    const [dir, data, out] = ['peer', 'data.csv', 'out'].map(name => join(scratch, name))
    writeFileSync(data, `a,label\n${Array.from({ length: 20 }, (_, i) => `${i % 5},${i % 2}`).join('\n')}\n`)
    const peer = processes.start(...options(dir))
    const client = await ProgramClient.join(`${dir}.s`, START)
    await peer.ready()
    await learn(client, 0, 40)
    const other = processes.start('--data', data, '--peer', peer.latest.addresses[0])
    assert.equal(await other.exit, 2)
    assert.match(other.stderr, /a program has this model and its data/)
    client.close()
    assert.equal(await peer.stop(), 0, peer.stderr)
    for (const args of [
      ['eval', '--dir', dir, '--data', data],
      ['predict', '--dir', dir, '--data', data],
      ['train', '--dir', dir, '--data', data],
      ['peer', '--dir', dir, '--data', data],
      ['explain', '--dir', dir],
      ['export', '--dir', dir, '--format', 'json', '--out', out],
      ['export', '--dir', dir, '--format', 'onnx', '--out', out]
    ]) {
      const { code, stderr } = await admb(args)
      assert.notEqual(code, 0, `${args}`)
      assert.match(stderr, /a program has this model/, `${args}`)
    }
    assert.equal((await admb(['export', '--dir', dir, '--out', out])).code, 0)
  })
})

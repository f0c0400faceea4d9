/** `admb regret`: of `admb train`, and of peers by their logs, one of which is killed and restarted. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MAIN, PeerProcesses, until } from '../../support/peer-processes.js'

interface Regret {
  readonly command: string
  readonly inputs: number
  readonly dataInputs: number
  readonly averageLoss: number
  readonly comparatorLoss: number
  readonly regret: number
  readonly gradientNorm: number
  readonly outcome: string
}

/** Two noisy half-planes. */
function plane(rows: number): string {
  const lines = Array.from({ length: rows }, (_, i) => {
    const x = (((i * 7919) % 2003) / 2003 - 0.5) * 4
    const y = (((i * 104_729) % 1999) / 1999 - 0.5) * 4
    const isUp = x + y > 0
    return `${Number(i % 7 === 0 ? !isUp : isUp)},${x.toFixed(4)},${y.toFixed(4)}`
  })
  return `label,x,y\n${lines.join('\n')}\n`
}

describe('admb regret', function () {
  this.timeout(120_000)
  const processes = new PeerProcesses()
  let data: string
  before(async () => {
    data = join(await processes.scratch(), 'plane.csv')
    writeFileSync(data, plane(3000))
  })
  after(() => processes.stop())

  const admb = (...args: string[]) => execFileSync(process.execPath, [MAIN, ...args], { encoding: 'utf8' })
  const regretOf = (...args: string[]) => JSON.parse(admb('regret', '--data', data, ...args, '--json')) as Regret

  it('gives the same regret for admb train and for its log', () => {
    const log = `${data}.train.jsonl`
    const learning = ['--batch', '16', '--rule', 'dual-averaging', '--passes', '2']
    const trained = JSON.parse(admb('train', '--data', data, ...learning, '--log', log, '--json'))
    const alone = regretOf(...learning)
    const logged = regretOf('--passes', '2', '--log', log)
    assert.equal(alone.command, 'regret')
    assert.equal(alone.averageLoss, trained.averageLoss)
    for (const { inputs, dataInputs, averageLoss, comparatorLoss, regret, gradientNorm, outcome } of [alone, logged]) {
      assert.deepEqual({ inputs, dataInputs, outcome }, { inputs: 6000, dataInputs: 6000, outcome: 'minimum' })
      assert.ok(gradientNorm < 1e-8)
      assert.ok(comparatorLoss < averageLoss && regret > 0)
      assert.ok(Math.abs(regret - 6000 * (averageLoss - comparatorLoss)) < 1e-6)
    }
    assert.ok(Math.abs(alone.regret - logged.regret) < 1e-6)
    assert.match(
      admb('regret', '--data', data, '--log', log),
      /regret {10}\d.*\n(.*\n)*note .*6,000 inputs, the data 3,000 \(2\.000 times as many\)/
    )
  })

  it('covers all inputs of peers, also of a peer that was killed', async () => {
    const common = ['--data', data, '--batch', '32', '--rate', '1500', '--log-level', 'warn']
    const logs = [1, 2].map(shard => `${data}.peer${shard}.jsonl`)
    const steady = processes.start(...common, '--shard', '1/2', '--log', logs[0])
    const [address] = (await steady.ready()).latest.addresses
    const dir = join(await processes.scratch(), 'state')
    const start = () => processes.start(...common, '--shard', '2/2', '--log', logs[1], '--dir', dir, '--peer', address)
    const killed = start()
    await killed.ready()
    await until('it has logged inputs', () => /"inputs":\d{3}/.test(readFileSync(logs[1], 'utf8')))
    await killed.stop('SIGKILL')
    const again = await start().ready()
    for (const peer of [steady, again]) {
      await until('its data end', () => peer.latest.ended)
      assert.equal(await peer.stop(), 0)
    }
    const { inputs, dataInputs, averageLoss, comparatorLoss, regret } = regretOf('--log', logs[0], '--log', logs[1])
    assert.deepEqual({ inputs, dataInputs }, { inputs: 3000, dataInputs: 3000 })
    const losses = [steady, again].map(peer => peer.latest.averageLoss * peer.latest.inputs)
    assert.ok(Math.abs(averageLoss * inputs - losses[0] - losses[1]) < 1e-6)
    assert.ok(regret > 0 && comparatorLoss < averageLoss)
  })
})

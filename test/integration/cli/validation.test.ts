/** `admb train` with rows that are never learned: the best pass is kept, and training ends when it no longer improves. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { admb, admbJson } from '../../support/admb-command.js'
import { scratchFolder } from '../../support/scratch.js'

/** Few rows with many columns, so that further passes overfit. */
function noisy(rows: number, from: number): string {
  const lines = Array.from({ length: rows }, (_, i) => {
    const at = from + i
    const values = Array.from({ length: 40 }, (_, k) => Math.sin(at * (k + 2.3) + k * k))
    const label = values[0] + values[1] + 2 * Math.sin(at * 97.7) > 0 ? 'yes' : 'no'
    return `${values.map(value => value.toFixed(3)).join(',')},${label}`
  })
  return `${Array.from({ length: 40 }, (_, k) => `x${k}`).join(',')},y\n${lines.join('\n')}\n`
}

describe('training with validation', function () {
  this.timeout(60_000)
  const dir = scratchFolder()
  const path = (name: string) => join(dir, name)
  before(() => {
    writeFileSync(path('train.csv'), noisy(200, 0))
    writeFileSync(path('other.csv'), noisy(300, 1000))
  })

  const train = (...more: string[]) => admbJson(['train', '--data', path('train.csv'), '--label', 'y', ...more])

  it('stops when the held-out rows no longer improve, and never learns them', async () => {
    const { inputs, validation } = await train('--passes', '60', '--holdout', '0.2', '--patience', '2')
    const { passes, best, losses, metrics } = validation
    assert.ok(passes < 60, `${passes} passes`)
    assert.equal(passes, best + 2)
    assert.equal(inputs, 160 * passes)
    assert.equal(metrics.inputs, 40)
    assert.equal(losses.length, passes)
    assert.equal(Math.min(...losses), losses[best - 1])
    assert.equal(metrics.loss, losses[best - 1])
  })

  it('stores the predictor of the best pass, which eval scores alike', async () => {
    const flags = ['--passes', '30', '--validation', path('other.csv'), '--dir', path('model')]
    const { inputs, validation } = await train(...flags)
    assert.equal(inputs, 200 * validation.passes)
    const { loss } = await admbJson(['eval', '--dir', path('model'), '--data', path('other.csv'), '--label', 'y'])
    assert.ok(Math.abs(loss - validation.metrics.loss) < 1e-6, `${loss} and ${validation.metrics.loss}`)
    assert.ok(loss < validation.losses.at(-1))
  })

  it('works for networks', async () => {
    const { validation } = await train('--model', 'mlp', '--backend', 'cpu', '--passes', '3', '--holdout', '0.25')
    assert.equal(validation.passes, 3)
    assert.equal(validation.metrics.inputs, 50)
  })

  it('scores as many rows at a time as fit on the device, without devices of its own', async () => {
    let threads = 0
    const count = () => threads++
    process.on('worker', count)
    const flags = [
      '--model',
      'mlp',
      '--backend',
      'cpu',
      '--batch',
      '2',
      '--passes',
      '3',
      '--validation',
      path('other.csv')
    ]
    const limited = ['--schedule', 'gpipe,workers=2', '--device-memory', '60kB']
    const { validation } = await train(...flags, ...limited)
    process.off('worker', count)
    assert.equal(threads, 1)
    const alone = await train(...flags, '--schedule', 'baseline-ag')
    assert.ok(Math.abs(validation.metrics.loss - alone.validation.metrics.loss) < 1e-4)
  })

  it('starts no devices for a prediction or an evaluation', async () => {
    await train('--model', 'mlp', '--backend', 'cpu', '--passes', '1', '--dir', path('scored'))
    let threads = 0
    const count = () => threads++
    process.on('worker', count)
    const losses: number[] = []
    for (const schedule of ['l2l', 'l2l-p,workers=2', '1f1b,workers=2', '1f1b']) {
      const flags = ['--backend', 'cpu', '--schedule', schedule, '--json']
      const { code, stdout, stderr } = await admb([
        'eval',
        '--dir',
        path('scored'),
        '--data',
        path('other.csv'),
        ...flags
      ])
      assert.equal(code, 0, stderr)
      losses.push(JSON.parse(stdout).metrics.loss)
    }
    process.off('worker', count)
    assert.equal(threads, 0)
    assert.deepEqual(losses, Array(losses.length).fill(losses[0]))
  })

  it('refuses options that do not go together, in one line', async () => {
    const refused = async (...more: string[]) => {
      const { code, stderr } = await admb(['train', '--data', path('train.csv'), '--label', 'y', ...more])
      assert.equal(code, 2, stderr)
      return stderr
    }
    assert.match(await refused('--patience', '2'), /give --holdout SHARE or --validation FILE/)
    assert.match(
      await refused('--holdout', '0.1', '--validation', path('other.csv')),
      /give either --holdout or --validation/
    )
    assert.match(await refused('--holdout', '0.9'), /share above 0 and up to 0.5/)
  })
})

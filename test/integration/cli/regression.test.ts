/** `--model linear` from the command line: one target scale for all shards and runs, and figures in the target's units. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskOptions } from '../../../src/task/options.js'
import { learningSpecFields, parseSpec, specText } from '../../../src/task/spec-text.js'
import { createPeerTask } from '../../../src/task/task.js'
import { admb, admbJson } from '../../support/admb-command.js'
import { scratchFolder } from '../../support/scratch.js'

/** Prices near 100,000 that follow from two columns. */
function table(rows: number, level = 100_000): string {
  const lines = Array.from({ length: rows }, (_, i) => {
    const [size, age] = [50 + 30 * Math.sin(i), 10 + 5 * Math.cos(3 * i)]
    return `${size.toFixed(3)},${age.toFixed(3)},${(level + 900 * size - 2000 * age).toFixed(1)}`
  })
  return `size,age,price\n${lines.join('\n')}\n`
}

describe('a regression', function () {
  this.timeout(60_000)
  const dir = scratchFolder()
  const path = (name: string) => join(dir, name)
  const flags = ['--label', 'price', '--model', 'linear', '--scale', 'standard']
  before(() => {
    writeFileSync(path('homes.csv'), table(4000))
    writeFileSync(path('later.csv'), table(4000, 500_000))
  })

  const task = (more: object): TaskOptions => ({
    model: 'linear',
    scale: 'standard',
    data: { data: path('homes.csv'), label: 'price', ...more }
  })

  it('is learned by a network in the units of the target as well, whose scale peers agree on', async () => {
    const network = ['--label', 'price', '--model', 'mlp', '--target', 'number', '--backend', 'wasm', '--passes', '3']
    const data = ['train', '--data', path('homes.csv'), ...network]
    const { averageLoss } = await admbJson([...data, '--dir', path('net'), '--predict-with', 'current'])
    assert.ok(Math.sqrt(2 * averageLoss) < 15_000, `${averageLoss}`)
    const { metrics: served } = await admbJson(data)
    assert.ok(served.total.mae < served.total.rmse && served.recent[0].r2 > 0.5, JSON.stringify(served))
    assert.ok(Math.abs(served.total.rmse - Math.sqrt(2 * served.total.loss)) < 1)
    const unscaled = await admbJson([...data, '--target-scale', 'none', '--predict-with', 'current'])
    assert.ok(unscaled.averageLoss > 10 * averageLoss, `${averageLoss}, ${unscaled.averageLoss}`)
    const stored = ['--data', path('homes.csv'), '--dir', path('net'), '--predict-with', 'current']
    const { loss } = await admbJson(['eval', ...stored])
    assert.ok(Math.sqrt(2 * loss) < 5000, `${loss}`)
    const { stdout: predicted } = await admb(['predict', ...stored])
    assert.ok(Math.abs(Number(predicted.split('\n')[0]) - 115_000) < 15_000, predicted.split('\n')[0])
    const { spec } = await createPeerTask({ ...task({}), model: 'mlp', target: 'number' })
    const fields = Object.fromEntries(learningSpecFields(spec))
    assert.match(fields['target-scale'], /^1\d+:\d+$/)
    assert.deepEqual(parseSpec(specText(spec)), JSON.parse(JSON.stringify(spec)))
  })

  it('stores the scale: eval and predict give numbers in the units of the target', async () => {
    const model = path('model')
    await admbJson(['train', '--data', path('homes.csv'), ...flags, '--dir', model])
    const { metrics } = await admbJson(['eval', '--data', path('homes.csv'), '--label', 'price', '--dir', model])
    assert.ok(metrics.rmse < 3000 && metrics.r2 > 0.98, JSON.stringify(metrics))
    writeFileSync(path('new.csv'), 'size,age\n50,10\n')
    const { stdout: printed } = await admb(['predict', '--data', path('new.csv'), '--dir', model])
    assert.ok(Math.abs(Number(printed) - 125_000) < 3000, printed)
  })

  it('has one spec for all shards of the data, which is another for other data', async () => {
    const [one, two] = await Promise.all([0, 1].map(index => createPeerTask(task({ shard: { index, count: 2 } }))))
    assert.equal(specText(one.spec), specText(two.spec))
    const other = await createPeerTask(task({ data: path('later.csv') }))
    assert.notEqual(specText(one.spec), specText(other.spec))
    const given = { ...task({ data: path('later.csv') }), targetScale: { mean: 1, deviation: 2 } }
    assert.match(specText((await createPeerTask(given)).spec), /"targetScale":\{"mean":1,"deviation":2\}/)
  })
})

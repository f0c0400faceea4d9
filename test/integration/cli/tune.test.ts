/** `admb tune`: the same result with any number of threads, and the same figures as `admb train`. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { admb, admbJson, admbProcess } from '../../support/admb-command.js'
import { scratchFolder } from '../../support/scratch.js'

/** A label that depends on two numbers and a category, and drifts. */
function table(rows: number): string {
  const lines = Array.from({ length: rows }, (_, i) => {
    const [a, b] = [Math.sin(1.7 * i), Math.cos(2.9 * i)]
    const city = ['Bern', 'Oslo', 'Rome'][i % 3]
    const score = a * Math.cos(i / 300) + b * Math.sin(i / 300) + (city === 'Oslo' ? 0.7 : 0)
    return `${a.toFixed(4)},${b.toFixed(4)},${city},${score > 0 ? 'yes' : 'no'},${(50 + 20 * score).toFixed(3)}`
  })
  return `a,b,city,label,price\n${lines.join('\n')}\n`
}

describe('admb tune', function () {
  this.timeout(60_000)
  const dir = scratchFolder()
  let data: string
  const path = (name: string) => join(dir, name)
  const json = (...words: string[]) => admbJson(words)
  before(() => {
    data = path('drift.csv')
    writeFileSync(data, table(3000))
  })

  it('finds better options than the defaults, and train has the same loss with its file and its line', async () => {
    const out = path('best.yaml')
    // Its line repeats the words of the process.
    const { stdout } = await admbProcess([
      'tune',
      '--data',
      data,
      '--ignore',
      'price',
      '--rule',
      'adagrad',
      '--batch',
      '1',
      '--budget',
      '300000',
      '--out',
      out,
      '--json'
    ])
    const found = JSON.parse(stdout)
    const [best] = found.best
    assert.equal(found.inputs, 3000)
    assert.ok(found.learned <= 300_000)
    assert.ok(best.loss < 0.8 * found.defaults.loss, `${best.loss} < ${found.defaults.loss}`)
    const config = parse(readFileSync(out, 'utf8'))
    assert.deepEqual(config, { model: 'logistic', rule: best.rule, average: best.average, batch: best.batch })
    const trained = await json('train', '--data', data, '--ignore', 'price', '--config', out)
    const again = await json(...found.line.split(' ').slice(1))
    // Batches of another size are summed in another order.
    for (const { averageLoss } of [trained, again]) assert.ok(Math.abs(averageLoss / best.loss - 1) < 1e-12)
  })

  it('does not depend on the number of threads, and samples candidates by the seed', async () => {
    const flags = ['--data', data, '--label', 'price', '--ignore', 'label', '--candidates', '30', '--budget', '100000']
    const [one, three, other] = await Promise.all([
      json('tune', ...flags, '--threads', '1'),
      json('tune', ...flags, '--threads', '3'),
      json('tune', ...flags, '--seed', '1')
    ])
    assert.equal(one.model, 'linear')
    assert.ok(one.best[0].metrics.rmse <= one.defaults.metrics.rmse)
    assert.deepEqual({ ...three, line: '' }, { ...one, line: '' })
    assert.notDeepEqual(other.best, one.best)
  })

  it('prints a table and the line to use', async () => {
    const words = ['tune', '--data', data, '--ignore', 'price', '--rule', 'momentum', '--top', '2']
    const { stdout } = await admbProcess(words)
    assert.match(stdout, /^1 +3,000 +loss 0\.\d+, \d\d\.\d\d % correct +--rule momentum\S* --average \S+ --batch \d+$/m)
    assert.match(stdout, /^defaults +3,000 +loss .* --rule momentum --average tail --batch 1$/m)
    assert.match(stdout, /^use +admb train --data \S+ --ignore price --rule momentum/m)
  })

  it('refuses networks, further passes, a small budget, and data on which all candidates diverge', async () => {
    const refusal = async (...words: string[]) => {
      const { stderr, code } = await admb(['tune', '--data', data, ...words])
      assert.notEqual(code, 0)
      return stderr
    }
    assert.match(await refusal('--model', 'mlp'), /options are tuned only for the models logistic/)
    assert.match(await refusal('--passes', '2'), /only the first pass is progressive/)
    const small = await refusal('--ignore', 'price', '--budget', '9000')
    const [, budget, candidates] =
      /too small for \d+ candidates: .*--budget (\d+), .*--candidates (\d+)/.exec(small) ?? []
    await json('tune', '--data', data, '--ignore', 'price', '--budget', budget)
    await json('tune', '--data', data, '--ignore', 'price', '--budget', '9000', '--candidates', candidates)
    const only = [
      '--model',
      'linear',
      '--label',
      'price',
      '--ignore',
      'label',
      '--target-scale',
      'none',
      '--batch',
      '1'
    ]
    assert.match(await refusal(...only, '--rule', 'momentum,step=1e9'), /all candidates diverge: .*smaller step/)
  })
})

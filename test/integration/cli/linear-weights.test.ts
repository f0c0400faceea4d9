/** Weights of linear models as text: `admb export --format`, and `--weights`. */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { admb } from '../../support/admb-command.js'
import { scratchFolder } from '../../support/scratch.js'

/** Rows of VW whose label is the sign of x − y. */
const VW = Array.from({ length: 400 }, (_, i) => {
  const [x, y] = [Math.sin(i), Math.cos(3 * i)]
  return `${x > y ? 1 : -1} |a x:${x.toFixed(4)} y:${y.toFixed(4)} |b c${i % 3} 17:0.5\n`
}).join('')

describe('weights of linear models in text files', function () {
  this.timeout(60_000)
  const folder = scratchFolder()
  let data = ''
  let dir = ''
  before(async () => {
    data = join(folder, 'data.vw')
    dir = join(folder, 'model')
    await writeFile(data, VW)
    await json('train', '--data', data, '--dir', dir)
  })

  async function json(...args: string[]): Promise<Record<string, never>> {
    const { code, stdout, stderr } = await admb([...args, '--json'])
    assert.equal(code, 0, stderr)
    return JSON.parse(stdout.trim().split('\n').at(-1) as string)
  }

  async function refused(...args: string[]): Promise<string> {
    const { code, stderr } = await admb(args)
    assert.ok(code === 1 || code === 2, stderr)
    return stderr
  }

  async function written(name: string, ...args: string[]): Promise<string> {
    const out = join(folder, name)
    await json('export', '--out', out, ...args)
    return out
  }

  it('are read back with the same loss, from JSON and safetensors', async () => {
    const { loss } = await json('eval', '--dir', dir, '--data', data)
    const files = [await written('same.json', '--dir', dir, '--format', 'json'), await written('folder', '--dir', dir)]
    for (const file of files) assert.equal((await json('eval', '--weights', file, '--data', data)).loss, loss, file)
    const before = await json('train', '--data', data)
    const after = await json(
      'train',
      '--data',
      data,
      '--weights',
      files[0],
      '--batch',
      '4',
      '--dir',
      join(folder, 'on')
    )
    assert.ok(after.averageLoss < before.averageLoss)
    assert.equal(after.updates, 100)
  })

  it('name the features that --data has', async () => {
    const text = await readFile(await written('named.json', '--dir', dir, '--format', 'json', '--data', data), 'utf8')
    // The constant feature is the first one, so others have VW's hash plus 1.
    assert.match(text, /\n\{"feature":"a\^y","index":42848,"weight":-\d/)
    assert.match(text, /\n\{"feature":"a\^x","index":55433,"weight":\d/)
    assert.match(text, /\n\{"feature":"b\^c0",/)
    assert.match(text, /^\{[^\n]*"constant":-?[\d.e-]+,\n/)
    const numbered = await readFile(await written('numbered.json', '--dir', dir, '--format', 'json'), 'utf8')
    assert.match(numbered, /\n\{"feature":"feature \d+","index":\d+,/)
  })

  it('of a table have the names of its columns, and one weight for each class', async () => {
    const table = join(folder, 'table.csv')
    const rows = Array.from(
      { length: 300 },
      (_, i) => `${i % 10},"a ""b"", c${i % 2}",${['ash', 'elm', 'oak'][i % 3]}\n`
    )
    await writeFile(table, `size,kind,tree\n${rows.join('')}`)
    const model = join(folder, 'trees')
    await json('train', '--data', table, '--label', 'tree', '--dir', model)
    const from = ['--dir', model, '--data', table]
    const file = await written('trees.json', ...from, '--format', 'json')
    const { loss } = await json('eval', '--dir', model, '--data', table)
    assert.equal((await json('eval', '--weights', file, '--data', table)).loss, loss)
    const { classes, constant, weights } = JSON.parse(await readFile(file, 'utf8'))
    const features = weights.map(({ feature }: { feature: string }) => feature)
    assert.equal(features[0], 'size')
    assert.ok(features.includes('kind=a "b", c1'), features.join())
    assert.ok(weights.every(({ weight }: { weight: number[] }) => weight.length === 3))
    assert.deepEqual(classes, ['ash', 'elm', 'oak'])
    assert.equal(constant.length, 3)
  })

  it('of JSON lines have the names of their keys', async () => {
    const lines = join(folder, 'rows.jsonl')
    const rows = Array.from({ length: 100 }, (_, i) => `{"label":${i % 2},"x":${i % 2},"on":true,"in":"Oslo"}\n`)
    await writeFile(lines, rows.join(''))
    const model = join(folder, 'keys')
    await json('train', '--data', lines, '--hash-bits', '16', '--dir', model)
    const file = await written('keys.json', '--dir', model, '--data', lines, '--format', 'json')
    const text = await readFile(file, 'utf8')
    for (const name of ['x', 'on=true', 'in=Oslo']) assert.match(text, new RegExp(`"feature":"${name}"`))
  })

  it('that cannot be used are refused in one line', async () => {
    const use = async (name: string, content: string, ...args: string[]) => {
      const file = join(folder, name)
      await writeFile(file, content)
      return refused('train', '--data', data, '--weights', file, ...args)
    }
    assert.match(await use('d.txt', 'Version 8\n'), /is not a valid safetensors file/)
    assert.match(await use('e.json', '{"a": 1}'), /holds no weights of a linear model/)
    const file = await written('used.json', '--dir', dir, '--format', 'json')
    assert.match(await refused('train', '--data', data, '--weights', file, '--model', 'hinge'), /remove --model/)
    assert.match(await refused('train', '--data', data, '--weights', file, '--dir', dir), /holds a predictor already/)
    assert.match(await refused('peer', '--weights', file), /run admb train --weights .* first, then admb peer/)
    assert.match(await refused('export', '--dir', dir, '--format', 'json', '--out', file), /already exists/)
    const changed = (await readFile(file, 'utf8')).replace(/"index":\d+/, '"index":9999999')
    assert.match(await use('f.json', changed), /the weight of index 9999999 does not fit the model/)
    const network = join(folder, 'network')
    await json('train', '--data', 'digits', '--limit', '64', '--model', 'mlp', '--backend', 'cpu', '--dir', network)
    const out = join(folder, 'network.json')
    assert.match(await refused('export', '--dir', network, '--format', 'json', '--out', out), /this one is a network/)
  })
})

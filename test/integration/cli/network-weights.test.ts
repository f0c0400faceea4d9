/** Networks of tables in files and directories of `--weights`, which keep scaling, columns and class names. */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { admb, admbJson } from '../../support/admb-command.js'
import { scratchFolder } from '../../support/scratch.js'

describe('networks of tables by --weights', function () {
  this.timeout(60_000)
  const folder = scratchFolder()
  const at = (name: string) => join(folder, name)
  before(async () => {
    // The classes depend on a number far from 0 and on a category; the number to predict is large.
    const rows = Array.from({ length: 600 }, (_, i) => {
      const x = 1000 + 10 * Math.sin(7 * i)
      const colour = ['red', 'green', 'blue'][(i * 5) % 3]
      const kind = colour === 'red' ? 'owl' : x > 1000 ? 'fox' : 'bee'
      const price = 50_000 + 900 * Math.sin(7 * i) + (colour === 'red' ? 400 : 0)
      return `${x.toFixed(3)},${colour},${kind},${price.toFixed(2)}`
    })
    await writeFile(at('all.csv'), `x,colour,kind,price\n${rows.join('\n')}\n`)
    const only = (columns: readonly number[]) => (row: string) => columns.map(c => row.split(',')[c]).join(',')
    const table = (columns: readonly number[]) => `${['x,colour,kind,price', ...rows].map(only(columns)).join('\n')}\n`
    await writeFile(at('kinds.csv'), table([0, 1, 2]))
    await writeFile(at('prices.csv'), table([0, 1, 3]))
    await writeFile(at('new.csv'), table([1, 0]))
    const train = (data: string, label: string, dir: string) =>
      admbJson([
        'train',
        '--data',
        at(data),
        '--label',
        label,
        '--model',
        'mlp',
        '--batch',
        '8',
        '--passes',
        '4',
        '--dir',
        dir
      ])
    await train('kinds.csv', 'kind', at('kinds'))
    await train('prices.csv', 'price', at('prices'))
    for (const name of ['kinds', 'prices']) {
      const { code, stderr } = await admb(['export', '--dir', at(name), '--layout', 'admb', '--out', at(`${name}-out`)])
      assert.equal(code, 0, stderr)
    }
  })

  it('have the figures of their directory', async () => {
    for (const [name, data] of [
      ['kinds', 'kinds.csv'],
      ['prices', 'prices.csv']
    ]) {
      const scores = (from: readonly string[]) => admbJson(['eval', ...from, '--data', at(data)])
      const expected = await scores(['--dir', at(name)])
      if (name === 'kinds') assert.ok(expected.accuracy > 0.9, `${expected.accuracy}`)
      else assert.ok(expected.metrics.r2 > 0.9, `${expected.metrics.r2}`)
      for (const path of [at(name), at(`${name}-out`), at(`${name}-out/model.safetensors`)]) {
        assert.deepEqual(await scores(['--weights', path]), expected)
      }
    }
  })

  it('predict rows without a label, by the names of the classes that were learned', async () => {
    const answers = async (from: readonly string[]) =>
      (await admb(['predict', ...from, '--data', at('new.csv')])).stdout
    const expected = await answers(['--dir', at('kinds')])
    assert.match(expected, /^owl 0\.\d+$/m)
    assert.equal(await answers(['--weights', at('kinds-out')]), expected)
  })

  it('continue with their scaling in further training', async () => {
    const learn = (...from: readonly string[]) =>
      admbJson(['train', ...from, '--data', at('kinds.csv'), '--batch', '8'])
    for (const path of [at('kinds'), at('kinds-out')]) {
      const { accuracy } = await learn('--weights', path)
      assert.ok(accuracy > 0.9, `${accuracy}`)
    }
  })

  it('are refused by name if a weight is not finite', async () => {
    const path = at('kinds-out/model.safetensors')
    const bytes = await readFile(path)
    const start = 8 + Number(bytes.readBigUInt64LE())
    const header = JSON.parse(bytes.subarray(8, start).toString())
    const [
      name,
      {
        data_offsets: [from]
      }
    ] = Object.entries(header).find(([key]) => key.endsWith('.bias')) as [string, { data_offsets: number[] }]
    for (const value of [Number.NaN, Number.NEGATIVE_INFINITY]) {
      bytes.writeFloatLE(value, start + from + 4)
      await writeFile(at('broken.safetensors'), bytes)
      for (const command of ['predict', 'eval', 'train']) {
        const args = [command, '--weights', at('broken.safetensors'), '--data', at('kinds.csv')]
        const { code, stderr, stdout } = await admb(args)
        assert.equal(code, 1, stderr)
        assert.match(stderr, new RegExp(`^admb: tensor ${name.replace('.', '\\.')} has 1 weights that are not finite`))
        assert.equal(stdout, '')
      }
    }
  })
})

/** Data as people have them, from the command line: each was read to a wrong result, or without a word about one. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { admb, admbJson } from '../../support/admb-command.js'

describe('ordinary data', function () {
  this.timeout(60_000)
  let folder = ''
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'admb-ordinary-'))
  })
  after(() => rm(folder, { recursive: true, force: true }))

  const at = (name: string) => join(folder, name)
  const write = async (name: string, content: string) => {
    await writeFile(at(name), content)
    return at(name)
  }

  it('is scaled by the simulator as by training', async () => {
    const rows = Array.from({ length: 800 }, (_, i) => {
      const [x, z] = [Math.sin(3 * i), Math.cos(7 * i)]
      return `${3000 + 900 * x},${0.002 * z},${x + z > 0 ? 'up' : 'down'},${70_000 + 9000 * x}`
    })
    const data = await write('simulated.csv', `x,z,way,price\n${rows.join('\n')}\n`)
    const simulated = async (label: string) =>
      admbJson([
        'sim',
        'run',
        'binary-tree',
        '--set',
        'stream=file',
        `data=${data}`,
        `label=${label}`,
        'nodes=2',
        'inputs=800',
        'batch=16'
      ])
    for (const label of ['way', 'price']) {
      const trained = await admbJson(['train', '--data', data, '--label', label, '--batch', '16'])
      const { averageLoss, violations } = await simulated(label)
      assert.deepEqual(violations, [])
      assert.ok(averageLoss < 1.5 * trained.averageLoss, `${averageLoss}, ${trained.averageLoss}`)
    }
  })

  it('with features that training lacked is scored, with weight 0 for these', async () => {
    const row = (i: number, more = '') => `${i % 2 ? '+1' : '-1'} 1:${i % 2 ? 1 : -1} 2:0.5${more}\n`
    const rows = (more: (i: number) => string) => Array.from({ length: 200 }, (_, i) => row(i, more(i))).join('')
    const plain = await write(
      'plain.svm',
      rows(() => '')
    )
    const further = await write(
      'further.svm',
      rows(i => (i % 3 ? '' : ` ${3 + i}:7`))
    )
    const dir = at('further')
    await admbJson(['train', '--data', plain, '--dir', dir])
    const expected = await admbJson(['eval', '--dir', dir, '--data', plain])
    const scored = await admbJson(['eval', '--dir', dir, '--data', further])
    assert.deepEqual([scored.inputs, scored.loss], [200, expected.loss])
    assert.match(scored.notices.join('\n'), /the model has 2 features, so others such as 3 are left out/)
    const { stdout } = await admb(['predict', '--dir', dir, '--data', further])
    assert.equal(stdout, (await admb(['predict', '--dir', dir, '--data', plain])).stdout)
  })
})

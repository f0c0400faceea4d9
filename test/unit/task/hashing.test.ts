/** How many features tables have for linear models and for networks. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TaskOptions } from '../../../src/task/options.js'
import { createPeerTask } from '../../../src/task/task.js'

describe('the features of a table', () => {
  const folder = mkdtempSync(join(tmpdir(), 'admb-hashing-'))
  const [mixed, numbers] = ['mixed.csv', 'numbers.csv'].map(name => join(folder, name))
  before(() => {
    const rows = Array.from({ length: 60 }, (_, i) => [i % 17, ['tea', 'rain', 'sea'][i % 3], i % 2 ? 'yes' : 'no'])
    writeFileSync(mixed, `size,kind,bought\n${rows.map(row => row.join(',')).join('\n')}\n`)
    writeFileSync(numbers, `size,bought\n${rows.map(([size, _, bought]) => `${size},${bought}`).join('\n')}\n`)
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  const mlp = { model: 'mlp', hidden: [4] }
  const cases: readonly [string, string, Partial<TaskOptions>, number][] = [
    ['a linear model, with a category', mixed, {}, 2 + 2 ** 18],
    ['a network, with a category', mixed, { model: mlp }, 1 + 2 ** 12],
    ['a network, with a category and a given size', mixed, { model: mlp, hashBits: 5 }, 1 + 2 ** 5],
    ['a network, without categories', numbers, { model: mlp }, 1]
  ]
  for (const [name, data, options, expected] of cases)
    it(`of ${name}`, async () => {
      const { spec } = await createPeerTask({ ...options, data: { data, label: 'bought' } })
      assert.equal(spec.dimension, expected)
    })
})

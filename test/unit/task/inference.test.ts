/** What is inferred from tables and texts for linear models and for networks. */
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

describe('the labels of a network', () => {
  const folder = mkdtempSync(join(tmpdir(), 'admb-labels-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  const file = (name: string, head: string, line: (i: number) => string) => {
    const path = join(folder, name)
    writeFileSync(path, `${head}\n${Array.from({ length: 90 }, (_, i) => line(i)).join('\n')}\n`)
    return { data: path, label: head.split(',').at(-1) as string }
  }
  const targetOf = async (options: TaskOptions) => (await createPeerTask(options)).spec.network?.target
  const mlp = { model: 'mlp', hidden: [4] }
  const transformer = { model: 'transformer', width: 8, layers: 1, heads: 2 }

  it('of a table are numbers if they are fractions or have many values, otherwise classes', async () => {
    const price = file('price.csv', 'size,price', i => `${i % 17},${(i % 17) * 3.5}`)
    const count = file('count.csv', 'size,count', i => `${i % 17},${i}`)
    const level = file('level.csv', 'size,level', i => `${i % 17},${i % 3}`)
    assert.equal((await targetOf({ data: price, model: mlp }))?.kind, 'number')
    assert.equal((await targetOf({ data: count, model: mlp }))?.kind, 'number')
    assert.deepEqual(await targetOf({ data: level, model: mlp }), { kind: 'class', classes: 3 })
    assert.equal((await targetOf({ data: price, model: mlp, target: 'class' }))?.kind, 'class')
    assert.equal((await targetOf({ data: level, model: mlp, target: 'number' }))?.kind, 'number')
  })

  it('of texts likewise', async () => {
    const score = file('score.csv', 'review,score', i => `some words ${i},${(i % 11) / 2}`)
    const stars = file('stars.csv', 'review,stars', i => `some words ${i},${1 + (i % 5)}`)
    assert.deepEqual(await targetOf({ data: score, model: transformer }), { kind: 'number' })
    assert.deepEqual(await targetOf({ data: stars, model: transformer }), { kind: 'class', classes: 5 })
    assert.equal((await targetOf({ data: score, model: transformer, target: 'class' }))?.kind, 'class')
    assert.deepEqual(await targetOf({ data: stars, model: transformer, target: 'number' }), { kind: 'number' })
  })
})

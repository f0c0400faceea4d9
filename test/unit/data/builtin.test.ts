/** The built-in streams: digits and the synthetic one with its optimum. */
import assert from 'node:assert/strict'
import { openStream } from '../../../src/data/open.js'
import { collect } from '../../../src/data/rows.js'
import type { StreamOptions } from '../../../src/data/stream-options.js'
import { plainStream } from '../../support/streams.js'
import { syntheticOptimum } from '../../support/synthetic-optimum.js'

const open = async (options: StreamOptions) => plainStream(await openStream(options))

describe('digits', () => {
  it('has 9,000 training digits and 1,000 other test digits', async () => {
    const stream = await openStream({ data: 'digits' })
    assert.equal(stream.dimension, 784)
    assert.equal(stream.classes, 10)
    const train = await plainStream(stream)
    const test = await open({ data: 'digits:test' })
    assert.equal(train.length, 9000)
    assert.equal(test.length, 1000)
    const counts = Array.from(
      { length: 10 },
      (_, label) => [...train, ...test].filter(row => row.label === label).length
    )
    assert.deepEqual(counts, [1001, 1127, 991, 1032, 980, 863, 1014, 1070, 944, 978])
    const known = new Set(train.map(row => JSON.stringify(row)))
    assert.ok(test.every(row => !known.has(JSON.stringify(row))))
  })

  it('has an order that depends on the seed and the pass', async () => {
    const labels = async (options: StreamOptions) => (await open(options)).map(row => row.label).join('')
    const one = await labels({ data: 'digits', seed: 1 })
    assert.equal(one, await labels({ data: 'digits', seed: 1 }))
    assert.notEqual(one, await labels({ data: 'digits', seed: 2 }))
    const two = await labels({ data: 'digits', seed: 1, passes: 2 })
    assert.equal(two.slice(0, 9000), one)
    assert.notEqual(two.slice(9000), one)
    assert.equal([...two.slice(9000)].sort().join(''), [...one].sort().join(''))
  })

  it('puts the constant feature before the pixels', async () => {
    const [plain] = await open({ data: 'digits', maxRows: 1 })
    const [row] = await open({ data: 'digits', maxRows: 1, constant: true })
    assert.deepEqual(row.features, [[0, 1], ...plain.features.map(([index, value]) => [index + 1, value])])
  })
})

describe('synthetic', () => {
  for (const options of [{}, { noise: 0.2, constant: true }, { target: 'number', noise: 0.5, dimension: 3 }] as const) {
    it(`has the stated optimum with ${JSON.stringify(options)}`, async () => {
      const isClass = !('target' in options)
      const count = 40_000
      const rows = await collect(await openStream({ data: 'synthetic', seed: 5, ...options }), count)
      const { weights, loss } = syntheticOptimum({ seed: 5, ...options })
      let total = 0
      const gradient = new Float64Array(weights.length)
      for (let row = 0; row < count; row++) {
        const [from, to] = [rows.offsets[row], rows.offsets[row + 1]]
        let score = 0
        for (let i = from; i < to; i++) score += weights[rows.indices[i]] * rows.values[i]
        const label = rows.labels[row]
        total += isClass ? Math.log1p(Math.exp(label === 1 ? -score : score)) : (score - label) ** 2 / 2
        const slope = isClass ? 1 / (1 + Math.exp(-score)) - label : score - label
        for (let i = from; i < to; i++) gradient[rows.indices[i]] += (slope * rows.values[i]) / count
      }
      // Five standard errors, each of at most 1 / √count.
      const tolerance = 5 / Math.sqrt(count)
      assert.ok(Math.abs(total / count - loss) < tolerance)
      assert.ok(gradient.every(slope => Math.abs(slope) < tolerance))
    })
  }

  it('is determined by the seed', async () => {
    const one = await open({ data: 'synthetic', seed: 1, maxRows: 50 })
    assert.deepEqual(one, await open({ data: 'synthetic', seed: 1, maxRows: 50 }))
    assert.notDeepEqual(one, await open({ data: 'synthetic', seed: 2, maxRows: 50 }))
    assert.notDeepEqual(syntheticOptimum({ seed: 1 }).weights, syntheticOptimum({ seed: 2 }).weights)
  })
})

/**
 * The readers on the public data sets, compared with the counts in their README. The data is outside the repository; if it is
 * missing, the tests are skipped.
 */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { openStream, type StreamOptions } from '../../src/data/index.js'

// From dist/test/data to the parent of the repository.
const data = fileURLToPath(new URL('../../../../shared/data/', import.meta.url))

interface Counts {
  rows: number
  entries: number
  labels: Map<number, number>
  labelSum: number
}

async function count(options: StreamOptions): Promise<Counts> {
  const counts: Counts = { rows: 0, entries: 0, labels: new Map(), labelSum: 0 }
  const stream = await openStream({ strict: true, ...options, data: data + options.data })
  for await (const batch of stream) {
    counts.rows += batch.size
    counts.entries += batch.offsets[batch.size]
    for (const label of batch.labels.subarray(0, batch.size)) {
      counts.labels.set(label, (counts.labels.get(label) ?? 0) + 1)
      counts.labelSum += label
    }
  }
  return counts
}

describe('streams on public data', () => {
  before(function () {
    if (existsSync(data)) return
    console.log('skipped: there is no shared/data beside the repository')
    this.skip()
  })

  const libsvm: [string, number, number, number, number][] = [
    ['a9a.libsvm.gz', 32_561, 451_592, 24_720, 7_841],
    ['a9a.t.libsvm.gz', 16_281, 225_731, 12_435, 3_846],
    ['agaricus.train.libsvm.gz', 6_513, 143_286, 3_373, 3_140],
    ['agaricus.test.libsvm.gz', 1_611, 35_442, 835, 776]
  ]
  for (const [name, rows, entries, negative, positive] of libsvm) {
    it(name, async () => {
      const counts = await count({ data: name, dimension: 126 })
      assert.equal(counts.rows, rows)
      assert.equal(counts.entries, entries)
      assert.deepEqual([counts.labels.get(0), counts.labels.get(1)], [negative, positive])
    })
  }

  it('MNIST', async () => {
    const train = await count({ data: 'mnist/train-images-idx3-ubyte.gz' })
    const perClass = Array.from({ length: 10 }, (_, label) => train.labels.get(label))
    assert.deepEqual(perClass, [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949])
    const test = await count({ data: 'mnist/t10k-images-idx3-ubyte.gz' })
    assert.equal(test.rows, 10_000)
  })

  it('elec2', async () => {
    const counts = await count({ data: 'elec2.csv.gz', label: 'class', classNames: ['DOWN', 'UP'], dimension: 8 })
    assert.equal(counts.rows, 45_312)
    assert.deepEqual([counts.labels.get(0), counts.labels.get(1)], [26_075, 19_237])
  })

  it('bike sharing', async () => {
    const ignore = ['instant', 'casual', 'registered']
    const counts = await count({ data: 'bike_sharing_hour.csv.gz', label: 'cnt', target: 'number', ignore })
    assert.equal(counts.rows, 17_379)
    assert.equal(counts.labelSum, 3_292_679)
  })
})

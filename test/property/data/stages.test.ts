/** Properties of the stages between a reader and a learner: shards, shuffle, scaling and random numbers. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { Preparation } from '../../../src/data/prepare.js'
import { Random } from '../../../src/data/random.js'
import { RowBuffer, type Rows } from '../../../src/data/rows.js'
import { leaveOut, shuffle, takeRows, takeShard } from '../../../src/data/stages.js'
import { type PlainRow, plainStream } from '../../support/streams.js'

/** Row i has label i and i % 4 features. Batches of the given sizes reuse one buffer. */
async function* batches(sizes: number[]): AsyncGenerator<Rows> {
  const out = new RowBuffer()
  let row = 0
  for (const size of sizes) {
    out.clear()
    for (let i = 0; i < size; i++, row++) {
      out.reserve(1, 3)
      for (let feature = 0; feature < row % 4; feature++) {
        out.indices[out.entries] = feature
        out.values[out.entries++] = row + feature / 4
      }
      out.numeric[out.size] = row % 4
      out.labels[out.size] = row
      out.offsets[++out.size] = out.entries
    }
    yield out.view()
  }
}

function stage(rows: AsyncGenerator<Rows>): AsyncGenerator<Rows> {
  const options = { schema: undefined, hashBits: undefined, constant: false, scale: 'standard' } as const
  return (Preparation.for(options) as Preparation).rows(rows)
}

const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 8 })
const byLabel = (rows: PlainRow[]) => rows.toSorted((a, b) => a.label - b.label)

describe('stages', () => {
  it('partitions the rows into shards in order', async () => {
    await fc.assert(
      fc.asyncProperty(sizes, fc.integer({ min: 1, max: 50 }), async (cut, count) => {
        const whole = await plainStream(batches(cut))
        const parts: PlainRow[] = []
        for (let index = 0; index < count; index++) {
          const part = await plainStream(takeShard(batches(cut), { index, count }))
          assert.deepEqual(
            part,
            whole.filter((_, row) => row % count === index)
          )
          parts.push(...part)
        }
        assert.deepEqual(byLabel(parts), whole)
      })
    )
  })

  it('takes the first rows for any division into batches', async () => {
    await fc.assert(
      fc.asyncProperty(sizes, fc.nat(200), async (cut, limit) => {
        const whole = await plainStream(batches(cut))
        assert.deepEqual(await plainStream(takeRows(batches(cut), limit)), whole.slice(0, limit))
      })
    )
  })

  it('holds rows out for any division into batches: what is learned and what is held out are all rows', async () => {
    await fc.assert(
      fc.asyncProperty(sizes, fc.integer({ min: 2, max: 20 }), async (cut, count) => {
        const held = { index: count - 1, count }
        const learned = await plainStream(leaveOut(batches(cut), held))
        const validated = await plainStream(takeShard(batches(cut), held))
        const whole = await plainStream(batches(cut))
        assert.deepEqual(byLabel([...learned, ...validated]), whole)
        assert.deepEqual(
          validated,
          whole.filter((_, row) => row % count === count - 1)
        )
        assert.deepEqual(byLabel(learned), learned)
      })
    )
  })

  it('shuffles by the seed only, not by the batches, and moves no row forward by more than a window', async () => {
    await fc.assert(
      fc.asyncProperty(sizes, fc.integer({ min: 1, max: 60 }), fc.integer(), async (cut, window, seed) => {
        const whole = await plainStream(batches(cut))
        const shuffled = await plainStream(shuffle(batches(cut), window, new Random(seed)))
        assert.deepEqual(byLabel(shuffled), whole)
        const single = whole.map(() => 1)
        assert.deepEqual(await plainStream(shuffle(batches(single), window, new Random(seed))), shuffled)
        for (const [i, row] of shuffled.entries()) assert.ok(row.label <= i + window)
      })
    )
  })

  it('scales by the mean and deviation of the past', async () => {
    await fc.assert(
      fc.asyncProperty(sizes, async cut => {
        const whole = await plainStream(batches(cut))
        const scaled = await plainStream(stage(batches(cut)))
        const past: number[][] = [[], [], []]
        for (const [row, { features }] of whole.entries()) {
          for (const [i, [feature, value]] of features.entries()) {
            const seen = past[feature]
            const mean = seen.reduce((sum, v) => sum + v, 0) / seen.length
            const deviation = Math.sqrt(seen.reduce((sum, v) => sum + (v - mean) ** 2, 0) / seen.length)
            const caution = 1 + 4 / seen.length
            const expected = deviation > 0 ? Math.max(-10, Math.min(10, (value - mean) / (deviation * caution))) : 0
            assert.ok(Math.abs(scaled[row].features[i][1] - expected) < 1e-5)
            seen.push(value)
          }
        }
      })
    )
  })

  it('draws uniformly', () => {
    const random = new Random(1)
    const count = 100_000
    const bins = new Array<number>(10).fill(0)
    let sum = 0
    let squares = 0
    for (let i = 0; i < count; i++) {
      bins[random.below(10)]++
      const normal = random.normal()
      sum += normal
      squares += normal * normal
    }
    // Chi-squared with nine degrees of freedom: 40 has probability 1e-5.
    const chi = bins.reduce((total, n) => total + (n - count / 10) ** 2 / (count / 10), 0)
    assert.ok(chi < 40)
    assert.ok(Math.abs(sum / count) < 0.02 && Math.abs(squares / count - 1) < 0.03)
  })
})

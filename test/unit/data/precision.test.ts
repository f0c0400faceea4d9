/** Numbers that differ little for their size keep their differences, and parts of times carry weight once they have recurred. */
import assert from 'node:assert/strict'
import { openStream } from '../../../src/data/open.js'
import { originOf } from '../../../src/data/schema/columns.js'
import { openThreaded } from '../../../src/data/threads/open-in-thread.js'
import { plainStream, withFiles } from '../../support/streams.js'

const ROWS = 400
const noise = (i: number) => ((i * 7919) % 1000) / 10

/** Values as the stream scales them, in float64: by the mean and deviation of those before. */
function standardised(values: readonly number[]): number[] {
  return values.map((value, i) => {
    const before = values.slice(0, i)
    const mean = before.reduce((sum, one) => sum + (one - values[0]), 0) / i
    const deviation = Math.sqrt(before.reduce((sum, one) => sum + (one - values[0] - mean) ** 2, 0) / i)
    return deviation > 0 ? Math.max(-10, Math.min(10, (value - values[0] - mean) / (deviation * (1 + 4 / i)))) : 0
  })
}

function near(found: readonly number[], expected: readonly number[]): void {
  assert.equal(found.length, expected.length)
  for (const [i, value] of expected.entries())
    assert.ok(Math.abs(found[i] - value) < 1e-4, `${i}: ${found[i]} is not ${value}`)
}

describe('numbers far from 0', () => {
  const numbers = Array.from({ length: ROWS }, (_, i) => 1_700_000_000 + noise(i))

  it('are centred before they are float32 numbers, in every format and thread', async () => {
    await withFiles(async write => {
      const times = numbers.map(number => new Date(1000 * number).toISOString())
      const csv = await write(
        'a.csv',
        `t,at,label\n${numbers.map((number, i) => `${number},${times[i]},${i % 2}\n`).join('')}`
      )
      const expected = standardised(numbers)
      for (const open of [openStream, openThreaded]) {
        const rows = await plainStream(await open({ data: csv, scale: 'auto' }))
        near(
          rows.map(({ features }) => features.find(([index]) => index === 0)?.[1] ?? Number.NaN),
          expected
        )
        near(
          rows.map(({ features }) => features.find(([index]) => index === 1)?.[1] ?? Number.NaN),
          expected
        )
      }
    })
  })

  it('are not changed without scaling', async () => {
    await withFiles(async write => {
      const data = await write('a.csv', `t,label\n${numbers.map((number, i) => `${number},${i % 2}\n`).join('')}`)
      const rows = await plainStream(await openStream({ data }))
      assert.equal(rows[7].features[0][1], Math.fround(numbers[7]))
    })
  })

  it('are exact as labels', async () => {
    await withFiles(async write => {
      const data = await write('a.csv', `x,label\n${numbers.map((number, i) => `${i % 3},${number}\n`).join('')}`)
      for (const open of [openStream, openThreaded]) {
        const stream = await open({
          data,
          scale: 'auto',
          target: 'number',
          inferLabel: true
        })
        const rows = await plainStream(stream)
        assert.deepEqual(
          rows.map(({ label }) => label),
          numbers
        )
      }
    })
  })

  it('have an origin of few digits near their mean, and others have none', () => {
    const origin = originOf(numbers) as number
    assert.ok(Math.abs(origin - 1_700_000_050) < 500)
    assert.equal(originOf(numbers.map(number => number - 1_700_000_000)), undefined)
    assert.equal(originOf([2000, 2024, 1990]), undefined)
    assert.equal(originOf([5e9, 5e9]), 5e9)
    assert.equal(originOf([]), undefined)
  })
})

describe('parts of a time', () => {
  /** The sums of squares of month, weekday and hour in each row. */
  async function partsOf(times: readonly string[], options = {}) {
    return withFiles(async write => {
      const data = await write('a.csv', `at,label\n${times.map((time, i) => `${time},${i % 2}\n`).join('')}`)
      const rows = await plainStream(await openStream({ data, scale: 'auto', ...options }))
      return rows.map(({ features }) => {
        const values = new Map(features)
        return [1, 3, 5].map(at => Math.round((values.get(at) ?? 0) ** 2 + (values.get(at + 1) ?? 0) ** 2))
      })
    })
  }
  const hourly = (hours: number, step = 1) =>
    Array.from({ length: Math.floor(hours / step) }, (_, i) =>
      new Date(Date.UTC(2024, 0, 1) + 3_600_000 * step * i).toISOString()
    )

  it('carry no weight until the times so far are within a whole cycle', async () => {
    const days = await partsOf(hourly(20 * 24))
    assert.deepEqual(days[20], [0, 0, 0])
    assert.deepEqual(days[48], [0, 0, 1])
    assert.deepEqual(days[6 * 24], [0, 0, 1])
    assert.deepEqual(days[8 * 24], [0, 1, 1])
    const years = await partsOf(hourly(500 * 24, 12))
    assert.deepEqual(
      [years[2 * 300], years[2 * 380]],
      [
        [0, 1, 1],
        [1, 1, 1]
      ]
    )
  })

  it('all carry weight if numbers are not scaled, and as the deviation of a schema says', async () => {
    assert.deepEqual((await partsOf(hourly(48), { scale: 'none' }))[0], [1, 1, 1])
    const schema = (deviation: number) => ({ schema: [{ name: 'at', kind: 'time', mean: 19_730, deviation }] })
    assert.deepEqual((await partsOf(hourly(48), schema(1)))[0], [0, 0, 1])
    assert.deepEqual((await partsOf(hourly(48), schema(200)))[0], [1, 1, 1])
  })

  it('do not exist of dates and times of day alone', async () => {
    const dates = Array.from({ length: 30 }, (_, i) => `2024-01-${String(i + 1).padStart(2, '0')}`)
    assert.deepEqual((await partsOf(dates))[20], [0, 1, 0])
    assert.deepEqual((await partsOf(Array.from({ length: 24 }, (_, i) => `${i}:30`)))[20], [0, 0, 1])
  })
})

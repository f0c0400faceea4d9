/** The shards of a file divide its malformed inputs among them, as they divide its rows. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { openStream, type StreamOptions } from '../../../src/data/index.js'
import { scratchFolder } from '../../support/scratch.js'

async function readAll(options: StreamOptions) {
  let reported = 0
  let rows = 0
  const stream = await openStream({ ...options, onMalformed: () => reported++ })
  for await (const { size } of stream) rows += size
  return { rows, reported, skipped: stream.skipped }
}

describe('malformed inputs of shards', () => {
  const dir = scratchFolder()

  const texts = {
    libsvm: (isRow: boolean) => (isRow ? '1 1:0.5' : '1 1:x'),
    jsonl: (isRow: boolean) => (isRow ? '{"label": 1, "features": [0.5]}' : '{"label"'),
    csv: (isRow: boolean) => (isRow ? '1,0.5' : '1,0.5,7')
  } as const

  it('are counted once, also before the first row', async () => {
    const cases = fc.record({
      format: fc.constantFrom(...(['libsvm', 'jsonl', 'csv'] as const)),
      lines: fc.array(fc.boolean(), { minLength: 1, maxLength: 60 }),
      count: fc.integer({ min: 1, max: 5 })
    })
    await fc.assert(
      fc.asyncProperty(cases, async ({ format, lines, count }) => {
        const data = join(dir, `some.${format}`)
        // The first line of CSV tells its columns.
        const head = format === 'csv' ? ['label,x', '1,0.5'] : []
        writeFileSync(data, `${[...head, ...lines.map(texts[format])].join('\n')}\n`)
        const options: StreamOptions = { data, format, target: 'class', classes: 2 }
        const whole = await readAll(options)
        const malformed = lines.filter(isRow => !isRow).length
        assert.equal(whole.skipped, malformed)
        const shards = []
        for (let index = 0; index < count; index++) shards.push(await readAll({ ...options, shard: { index, count } }))
        assert.equal(
          shards.reduce((sum, shard) => sum + shard.rows, 0),
          whole.rows
        )
        assert.equal(
          shards.reduce((sum, shard) => sum + shard.skipped, 0),
          malformed
        )
        for (const shard of shards) assert.equal(shard.reported, malformed)
      })
    )
  })

  it('are divided evenly, also if every other line is malformed', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 2, max: 8 }), fc.integer({ min: 1, max: 8 }), async (count, period) => {
        const data = join(dir, 'regular.libsvm')
        const lines = Array.from({ length: 400 * count * period }, (_, i) => texts.libsvm(i % period !== 0))
        writeFileSync(data, `${lines.join('\n')}\n`)
        for (let index = 0; index < count; index++) {
          const { skipped } = await readAll({ data, shard: { index, count } })
          assert.ok(skipped > 300 && skipped < 500, `${skipped} of shard ${index} of ${count}`)
        }
      }),
      { numRuns: 20 }
    )
  })
})

/** Peers with files of their own that share a spec read one row as the same features, to the last bit. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { openStream, type StreamOptions } from '../../../src/data/index.js'
import { measured } from '../../../src/task/measured.js'
import { type ReadOptions, streamFor } from '../../../src/task/stream.js'
import { createPeerTask } from '../../../src/task/task.js'

const word = fc.constantFrom('red', 'green', 'blue', '')
const number = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e9, max: 1e9 }).map(value => value.toFixed(3)),
  fc.integer({ min: 1_700_000_000, max: 1_700_000_100 }).map(String),
  fc.constant('')
)
const day = fc.integer({ min: 0, max: 900 }).map(d => new Date(1.6e12 + 864e5 * d).toISOString().slice(0, 10))
const row = fc.record({ amount: number, colour: word, since: day, y: fc.constantFrom('no', 'yes') })
const rows = (minLength: number) => fc.array(row, { minLength, maxLength: 40 })
type Row = { readonly amount: string; readonly colour: string; readonly since: string; readonly y: string }
type Name = keyof Row

const csv = (list: readonly Row[], names: readonly Name[]) =>
  `${names.join(',')}\n${list.map(one => names.map(name => one[name]).join(',')).join('\n')}\n`

describe('peers with one spec', () => {
  const folder = mkdtempSync(join(tmpdir(), 'admb-test-'))
  after(() => rmSync(folder, { recursive: true }))

  const featuresOf = async (stream: StreamOptions) => {
    const read: unknown[] = []
    for await (const { size, labels, offsets, indices, values } of await openStream(stream)) {
      const entries = offsets[size]
      read.push([...labels.subarray(0, size)], [...indices.subarray(0, entries)], [...values.subarray(0, entries)])
    }
    return read
  }

  it('read one row as the same features, whatever their own files contain', async () => {
    const columns = fc.shuffledSubarray<Name>(['amount', 'colour', 'since', 'y'], { minLength: 4 })
    await fc.assert(
      fc.asyncProperty(rows(12), rows(1), columns, async (first, others, order) => {
        // Both classes, and each colour.
        const own: Row[] = ['no', 'yes'].map(y => ({ amount: '1.5', colour: 'red', since: '2020-10-01', y }))
        const [a, b] = [join(folder, 'a.csv'), join(folder, 'b.csv')]
        writeFileSync(a, csv([...own, ...first], ['amount', 'colour', 'since', 'y']))
        writeFileSync(b, csv(others, order))
        const { spec, stream } = await measured(await createPeerTask({ data: { data: a, label: 'y' } }))
        assert.equal(spec.features.scale, 'none')
        const joined = streamFor(spec, { data: b, label: 'y', lacksColumns: true } as ReadOptions)
        // The founder reads the same rows, in another order of columns.
        const c = join(folder, 'c.csv')
        writeFileSync(c, csv(others, ['amount', 'colour', 'since', 'y']))
        assert.deepEqual(await featuresOf({ ...(stream as StreamOptions), data: c }), await featuresOf(joined))
      }),
      { numRuns: 40 }
    )
  })
})

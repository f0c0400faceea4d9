/** Parquet gives the rows of the same table in CSV, and continues at any row. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { openStream, type StreamOptions, type StreamPosition } from '../../../src/data/index.js'
import { parquetOf } from '../../support/parquet.js'
import { type PlainRow, plainRows, plainStream, withFiles } from '../../support/streams.js'

const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { freq: 6 })
const decimal = fc
  .tuple(fc.integer(), fc.integer({ min: 0, max: 12 }))
  .map(([digits, fraction]) => digits / 10 ** fraction)
const number = optional(fc.oneof(decimal, fc.double({ noNaN: true, min: -1e9, max: 1e9 })))
const text = optional(fc.string({ unit: fc.constantFrom('a', 'B', ' ', '"', ',', '\n', '\r', 'ü', '1'), maxLength: 6 }))
const tables = fc.array(fc.record({ number, text, label: fc.constantFrom('no', 'yes') }), {
  minLength: 2,
  maxLength: 60
})
type Table = typeof tables extends fc.Arbitrary<infer T> ? T : never

const parquet = (table: Table, rowGroupSize: number) =>
  parquetOf(
    [
      { name: 'number', data: table.map(row => row.number), type: 'DOUBLE' },
      { name: 'text', data: table.map(row => row.text), type: 'STRING' },
      { name: 'label', data: table.map(row => row.label), type: 'STRING' }
    ],
    'SNAPPY',
    rowGroupSize
  )

function csv(table: Table): string {
  const quoted = (value: string | null) => (value === null ? '' : `"${value.replaceAll('"', '""')}"`)
  const lines = table.map(row => `${row.number ?? ''},${quoted(row.text)},${row.label}\n`)
  return `number,text,label\n${lines.join('')}`
}

const schema = [
  { name: 'number', kind: 'number', missing: true },
  { name: 'text', kind: 'category' }
] as const
const options = { schema, classNames: ['no', 'yes'] }

describe('Parquet (properties)', () => {
  it('has the rows of the same table in CSV', () =>
    fc.assert(
      fc.asyncProperty(tables, fc.integer({ min: 1, max: 20 }), (table, rowGroupSize) =>
        withFiles(async write => {
          const data = await write('a.parquet', parquet(table, rowGroupSize))
          const plain = await write('a.csv', csv(table))
          assert.deepEqual(
            await plainStream(await openStream({ data, ...options })),
            await plainStream(await openStream({ data: plain, ...options }))
          )
        })
      ),
      { numRuns: 60 }
    ))

  it('continues at any row', () =>
    fc.assert(
      fc.asyncProperty(tables, fc.integer({ min: 1, max: 20 }), fc.nat(60), (table, rowGroupSize, stop) =>
        withFiles(async write => {
          const stream: StreamOptions = { data: await write('a.parquet', parquet(table, rowGroupSize)), ...options }
          const rows: PlainRow[] = []
          let resume: StreamPosition | undefined
          for await (const batch of await openStream({ ...stream, maxRows: stop })) {
            rows.push(...plainRows(batch))
            resume = JSON.parse(JSON.stringify(batch.positionAfter?.(batch.size))) as StreamPosition
          }
          rows.push(...(await plainStream(await openStream({ ...stream, resume }))))
          assert.deepEqual(rows, await plainStream(await openStream(stream)))
        })
      ),
      { numRuns: 60 }
    ))
})

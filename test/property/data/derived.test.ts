/** Columns that are made from others: interactions. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import {
  type ColumnSchema,
  createParser,
  Layout,
  type ParserOptions,
  Preparation,
  RunningMoments
} from '../../../src/data/index.js'
import { plainRows } from '../../support/streams.js'

const columns: readonly ColumnSchema[] = [
  { name: 'a', kind: 'number', missing: true },
  { name: 'b', kind: 'number' },
  { name: 'c', kind: 'category' },
  { name: 'd', kind: 'category' }
]
const cell = fc.option(fc.integer({ min: -9, max: 9 }), { nil: undefined, freq: 4 })
const rowArbitrary = fc.record({
  y: fc.integer({ min: -9, max: 9 }),
  a: cell,
  b: cell,
  c: fc.constantFrom('x', 'y', 'z'),
  d: fc.constantFrom('p', 'q')
})
type Row = Parameters<typeof csvOf>[0][number]

function csvOf(
  rows: readonly { y: number; a: number | undefined; b: number | undefined; c: string; d: string }[],
  names: readonly ('y' | 'a' | 'b' | 'c' | 'd')[] = ['y', 'a', 'b', 'c', 'd']
): string {
  return `${names.join(',')}\n${rows.map(row => `${names.map(name => row[name] ?? '').join(',')}\n`).join('')}`
}

function preparationOf(schema: readonly ColumnSchema[], scale: 'none' | 'standard') {
  const scaling = { moments: new RunningMoments(), frozen: false }
  return Preparation.for({ schema, hashBits: 8, constant: true, scale }, scaling) as Preparation
}

/** The features of all rows, which arrive in batches of the given sizes; `between` is called between two batches. */
function featuresOf(
  schema: readonly ColumnSchema[],
  rows: readonly Row[],
  sizes: readonly number[],
  scale: 'none' | 'standard'
): ReadonlyMap<number, number>[] {
  const parser = createParser('csv', {
    schema,
    label: 'y',
    target: 'number',
    hashBits: 8,
    constant: true,
    strict: true
  })
  const parsed = parser.push(Buffer.from(csvOf(rows)))
  const found: ReadonlyMap<number, number>[] = []
  const preparation = preparationOf(schema, scale)
  for (let from = 0, batch = 0; from < rows.length; batch++) {
    const to = Math.min(rows.length, from + (sizes[batch % sizes.length] ?? 1))
    const prepared = plainRows(preparation.scaled(parsed, false, from, to))
    for (const { features } of prepared) {
      assert.equal(new Set(features.map(([feature]) => feature)).size, features.length, 'each feature once')
      found.push(new Map(features))
    }
    from = to
  }
  return found
}

const rowsArbitrary = fc.array(rowArbitrary, { minLength: 1, maxLength: 30 })
const sizesArbitrary = fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 4 })

describe('interactions', () => {
  const schema: readonly ColumnSchema[] = [
    ...columns,
    { name: 'a:b', kind: 'interaction', of: ['a', 'b'] },
    { name: 'a:a', kind: 'interaction', of: ['a', 'a'] },
    { name: 'b:c', kind: 'interaction', of: ['b', 'c'] },
    { name: 'c:d', kind: 'interaction', of: ['c', 'd'] }
  ]
  const layout = new Layout(schema, 8)
  const at = (name: string) => (layout.columns.find(column => column.name === name)?.feature ?? 0) + 1

  it('of numbers are products of the numbers as the model sees them', () => {
    fc.assert(
      fc.property(rowsArbitrary, sizesArbitrary, fc.constantFrom('none', 'standard'), (rows, sizes, scale) => {
        for (const features of featuresOf(schema, rows, sizes, scale)) {
          const [a, b] = [features.get(at('a')) ?? 0, features.get(at('b')) ?? 0]
          assert.equal(features.get(at('a:b')), Math.fround(a * b))
          assert.equal(features.get(at('a:a')), Math.fround(a * a))
        }
      }),
      { numRuns: 200 }
    )
  })

  it('of categories are a feature for each pair, and with a number its value for each category', () => {
    const hashed = (features: ReadonlyMap<number, number>) =>
      new Set([...features.keys()].filter(feature => feature > layout.hashedFrom))
    const single = (row: Partial<Row>, scale: 'none' | 'standard' = 'none') =>
      featuresOf(schema, [{ y: 0, a: 1, b: 3, c: 'x', d: 'p', ...row }], [1], scale)[0]
    const [first, same, otherC, otherD, otherB] = [
      single({}),
      single({ a: 7 }),
      single({ c: 'y' }),
      single({ d: 'q' }),
      single({ b: 5 })
    ]
    // Two categories, their pair, and a number by category.
    assert.equal(hashed(first).size, 4)
    assert.deepEqual(hashed(same), hashed(first))
    const shared = (other: ReadonlyMap<number, number>) => [...hashed(first)].filter(f => hashed(other).has(f)).length
    assert.deepEqual([shared(otherC), shared(otherD), shared(otherB)], [1, 2, 4])
    const slope = [...hashed(first)].filter(feature => first.get(feature) === 3)
    assert.equal(slope.length, 1)
    assert.deepEqual([otherB.get(slope[0]), otherD.get(slope[0]), otherC.get(slope[0])], [5, 3, undefined])
  })

  it('are the same in any order of columns, from CSV and from JSON lines', () => {
    const options: ParserOptions = { schema, label: 'y', target: 'number', hashBits: 8, constant: true, strict: true }
    const sorted = (parsed: ReturnType<typeof plainRows>) =>
      parsed.map(({ label, features }) => ({ label, features: [...features].sort((x, y) => x[0] - y[0]) }))
    const order = fc.shuffledSubarray(['y', 'a', 'b', 'c', 'd'] as const, { minLength: 5, maxLength: 5 })
    fc.assert(
      fc.property(rowsArbitrary, order, (rows, names) => {
        const json = rows.map(row => `${JSON.stringify(Object.fromEntries(names.map(name => [name, row[name]])))}\n`)
        const read = (format: 'csv' | 'jsonl', text: string) => {
          const parsed = createParser(format, options).push(Buffer.from(text))
          return sorted(plainRows(preparationOf(schema, 'none').scaled(parsed)))
        }
        const expected = read('csv', csvOf(rows))
        assert.deepEqual(read('csv', csvOf(rows, names)), expected)
        assert.deepEqual(read('jsonl', json.join('')), expected)
      }),
      { numRuns: 100 }
    )
  })
})

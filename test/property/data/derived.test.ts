/** Columns that are made from others: lags and interactions. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import {
  type ColumnSchema,
  createParser,
  LagHistory,
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

function preparationOf(schema: readonly ColumnSchema[], scale: 'none' | 'standard', history = new LagHistory()) {
  const scaling = { moments: new RunningMoments(), history, frozen: false }
  return Preparation.for({ schema, hashBits: 8, constant: true, scale }, scaling) as Preparation
}

/** The features of all rows, which arrive in batches of the given sizes; `between` is called between two batches. */
function featuresOf(
  schema: readonly ColumnSchema[],
  rows: readonly Row[],
  sizes: readonly number[],
  scale: 'none' | 'standard',
  restarts = false
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
  let history = new LagHistory()
  let preparation = preparationOf(schema, scale, history)
  for (let from = 0, batch = 0; from < rows.length; batch++) {
    const to = Math.min(rows.length, from + (sizes[batch % sizes.length] ?? 1))
    const prepared = plainRows(preparation.next(parsed, from, to))
    for (const { features } of prepared) {
      assert.equal(new Set(features.map(([feature]) => feature)).size, features.length, 'each feature once')
      found.push(new Map(features))
    }
    from = to
    if (!restarts) continue
    history = LagHistory.restore(JSON.parse(JSON.stringify(history.save())))
    preparation = preparationOf(schema, scale, history)
  }
  return found
}

const rowsArbitrary = fc.array(rowArbitrary, { minLength: 1, maxLength: 30 })
const sizesArbitrary = fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 4 })

describe('lags', () => {
  const lags = (rows: readonly (readonly ['y' | 'a' | 'b', number])[]): readonly ColumnSchema[] => [
    ...columns,
    ...rows.map(
      ([of, back]): ColumnSchema => ({ name: `${of} lag ${back}`, kind: 'lag', of: [of], rows: back, missing: true })
    )
  ]
  const lagsArbitrary = fc.uniqueArray(
    fc.tuple(fc.constantFrom('y' as const, 'a' as const, 'b' as const), fc.integer({ min: 1, max: 12 })),
    { minLength: 1, maxLength: 4, selector: ([of, back]) => `${of} ${back}` }
  )

  it('are the values of earlier rows, in batches of any size and across restarts', () => {
    fc.assert(
      fc.property(rowsArbitrary, lagsArbitrary, sizesArbitrary, fc.boolean(), (rows, made, sizes, restarts) => {
        const schema = lags(made)
        const layout = new Layout(schema, 8)
        const found = featuresOf(schema, rows, sizes, 'none', restarts)
        for (const [number, features] of found.entries()) {
          for (const { from, rows: back, feature, indicator, source } of layout.derived.lags) {
            const expected = rows[number - back]?.[source as 'y' | 'a' | 'b']
            assert.equal(features.get(feature + 1), expected, `${source} ${back} rows before row ${number}`)
            assert.equal(features.get(indicator + 1), expected === undefined ? 1 : undefined)
            assert.equal(from >= 0, source !== 'y')
          }
          assert.equal(features.get((layout.column('b')?.feature ?? 0) + 1), rows[number].b)
        }
      }),
      { numRuns: 300 }
    )
  })

  it('of rows to predict follow the rows that were learned, and change nothing', () => {
    fc.assert(
      fc.property(rowsArbitrary, rowsArbitrary, lagsArbitrary, (learned, asked, made) => {
        const schema = lags(made)
        const parse = (rows: readonly Row[]) =>
          createParser('csv', { schema, label: 'y', target: 'number', hashBits: 8, constant: true }).push(
            Buffer.from(csvOf(rows))
          )
        const preparation = preparationOf(schema, 'none')
        preparation.next(parse(learned), 0, learned.length)
        const peeked = plainRows(preparation.peek(parse(asked)))
        assert.deepEqual(peeked, plainRows(preparation.peek(parse(asked))))
        assert.deepEqual(peeked, plainRows(preparation.next(parse(asked), 0, asked.length)))
        // Rows whose labels are delayed are then the last rows.
        const late = preparationOf(schema, 'none')
        late.next(parse(learned), 0, learned.length)
        late.late(late.peekLags(parse(asked)))
        assert.deepEqual(plainRows(late.peek(parse(learned))), plainRows(preparation.peek(parse(learned))))
      }),
      { numRuns: 100 }
    )
  })
})

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
          return sorted(plainRows(preparationOf(schema, 'none').next(parsed, 0, parsed.size)))
        }
        const expected = read('csv', csvOf(rows))
        assert.deepEqual(read('csv', csvOf(rows, names)), expected)
        assert.deepEqual(read('jsonl', json.join('')), expected)
      }),
      { numRuns: 100 }
    )
  })
})

/** CSV and JSON lines parsed in WebAssembly have the rows and faults of the loops in TypeScript, which parse short texts. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { type ColumnSchema, createParser, type Malformed, type ParserOptions } from '../../../src/data/parsing.js'

const SCHEMA: readonly ColumnSchema[] = [
  { name: 'b', kind: 'number' },
  { name: 'a', kind: 'number', missing: true },
  { name: 'c', kind: 'category' },
  { name: 'd', kind: 'number', mean: 3, deviation: 2 }
]

const digits = fc.array(fc.constantFrom(...'0123456789'), { maxLength: 17 }).map(all => all.join(''))
const decimal = fc
  .tuple(
    fc.constantFrom('', '-', '+'),
    digits,
    fc.constantFrom('', '.'),
    digits,
    fc.constantFrom('', '', '', 'e2', 'e-30')
  )
  .map(parts => parts.join(''))
const short = fc
  .tuple(fc.constantFrom('', '-'), fc.nat(99_999), fc.constantFrom('', '.5', '.125'))
  .map(parts => parts.join(''))
const number = fc.oneof(
  { weight: 40, arbitrary: short },
  { weight: 4, arbitrary: fc.constant('') },
  { weight: 8, arbitrary: decimal },
  { weight: 1, arbitrary: fc.constantFrom('NA', '"1"', ' 2', '3 ', '1e39', '9007199254740993', '.', '1.5.2') }
)
const word = fc.oneof(
  { weight: 20, arbitrary: fc.constantFrom('red', 'green', 'a longer name of a colour') },
  { weight: 1, arbitrary: fc.constantFrom('', '"with, a comma"', '"two\nlines"', 'pad ', ' pad', 'quo"te') }
)
const label = fc.oneof(
  { weight: 30, arbitrary: fc.constantFrom('0', '1') },
  { weight: 1, arbitrary: fc.constantFrom('2', '', 'x') }
)
const row = fc.record({ a: number, b: number, c: word, d: number, label })
const names = fc.shuffledSubarray(['a', 'b', 'c', 'd', 'label', 'other'] as const, { minLength: 6 })

interface Parsed {
  readonly rows: { label: number; entries: [number, number][]; numeric: number }[]
  readonly faults: Pick<Malformed, 'line' | 'column' | 'reason'>[]
}

function parsed(pieces: readonly string[], options: ParserOptions, format: 'csv' | 'jsonl' = 'csv'): Parsed {
  const faults: Parsed['faults'] = []
  const onMalformed = ({ line, column, reason }: Malformed) => faults.push({ line, column, reason })
  const parser = createParser(format, { ...options, onMalformed })
  const rows: Parsed['rows'] = []
  for (const piece of pieces) {
    const { size, labels, offsets, indices, values, numeric } = parser.push(Buffer.from(piece))
    for (let r = 0; r < size; r++) {
      const entries = Array.from({ length: offsets[r + 1] - offsets[r] }, (_, i): [number, number] => [
        indices[offsets[r] + i],
        values[offsets[r] + i]
      ])
      rows.push({ label: labels[r], entries, numeric: numeric[r] })
    }
  }
  return { rows, faults }
}

describe('CSV in WebAssembly', () => {
  it('has the rows and faults of the loops in TypeScript', () => {
    let count = 0
    fc.assert(
      fc.property(
        names,
        fc.array(row, { minLength: 1, maxLength: 40 }),
        fc.integer({ min: 1, max: 60 }),
        fc.constantFrom('\n', '\r\n'),
        fc.constantFrom(',', '\t', ';'),
        (order, block, copies, newline, separator) => {
          const rows = Array.from({ length: copies }, () => block).flat()
          const lines = rows.map(given => order.map(name => (name === 'other' ? 'x' : given[name])).join(separator))
          const all = [order.join(separator), ...lines].map(line => `${line}${newline}`)
          const options = { schema: SCHEMA, constant: true, delimiter: separator, hashBits: 10 } as ParserOptions
          const [one, other] = [[all.join('')], all].map(pieces => parsed(pieces, options))
          assert.deepEqual(one, other)
          count += one.rows.length
        }
      ),
      { numRuns: 150 }
    )
    assert.ok(count > 10_000)
  })

  it('divides long texts into parts of whole rows, and takes numbers of up to 15 digits', () => {
    const lines = Array.from({ length: 9000 }, (_, i) => `${i},${i / 7},colour ${i % 5},-${i}.00000001,${i % 2}\n`)
    const text = ['b,a,c,d,label\n', ...lines]
    const options = { schema: SCHEMA, constant: true, hashBits: 10 }
    assert.deepEqual(parsed([text.join('')], options), parsed(text, options))
  })
})

const json = fc.oneof(
  { weight: 40, arbitrary: short },
  { weight: 3, arbitrary: decimal },
  { weight: 1, arbitrary: fc.constantFrom('null', 'true', '"7"', '{}', '[1]', '', '1e39', '"x"') }
)
const string = fc.oneof(
  { weight: 20, arbitrary: fc.constantFrom('"red"', '""', '"a longer name of a colour"', '"ä"') },
  { weight: 1, arbitrary: fc.constantFrom('"\\u0041"', '"a\\"b"', 'null', '5', '"open', '"tab\t"') }
)
const jsonLabel = fc.oneof(
  { weight: 30, arbitrary: fc.constantFrom('0', '1') },
  { weight: 1, arbitrary: fc.constantFrom('"1"', '2', 'true', 'null') }
)
const form = fc.oneof(
  { weight: 60, arbitrary: fc.constant('') },
  { weight: 1, arbitrary: fc.constantFrom('reversed', 'spaced', 'short', 'twice', 'blank', 'behind') }
)
const object = fc.record({ a: json, b: json, c: string, d: json, label: jsonLabel, form })

describe('JSON lines in WebAssembly', () => {
  it('have the rows and faults of the loops in TypeScript', () => {
    let count = 0
    fc.assert(
      fc.property(
        names,
        fc.array(object, { minLength: 1, maxLength: 40 }),
        fc.integer({ min: 1, max: 60 }),
        fc.boolean(),
        fc.constantFrom('\n', '\r\n'),
        (given, block, copies, hasOther, newline) => {
          const order = given.filter(name => hasOther || name !== 'other')
          const lineOf = ({ form, ...values }: (typeof block)[number]) => {
            const keys = form === 'reversed' ? order.toReversed() : form === 'short' ? order.slice(1) : order
            const members = keys.map(key => `"${key}":${key === 'other' ? '9' : values[key]}`)
            if (form === 'twice') members.push(members[0])
            const line = `{${members.join(form === 'spaced' ? ' , ' : ',')}}`
            return form === 'blank' ? '  ' : form === 'behind' ? `${line} 1` : line
          }
          const lines = Array.from({ length: copies }, () => block.map(row => `${lineOf(row)}${newline}`)).flat()
          const options = { schema: SCHEMA, constant: true, hashBits: 10 }
          const [one, other] = [[lines.join('')], lines].map(pieces => parsed(pieces, options, 'jsonl'))
          assert.deepEqual(one, other)
          count += one.rows.length
        }
      ),
      { numRuns: 150 }
    )
    assert.ok(count > 10_000)
  })

  it('are refused if text follows one object or each of them', () => {
    const lines = Array.from({ length: 2000 }, (_, i) => `{"a":1,"b":${i},"c":"red","d":2,"label":${i % 2}} 1\n`)
    const options = { schema: SCHEMA, constant: true, hashBits: 10 }
    const { rows, faults } = parsed([lines.join('')], options, 'jsonl')
    assert.equal(rows.length, 0)
    assert.deepEqual(faults, parsed(lines, options, 'jsonl').faults)
    assert.ok(faults.every(({ reason }) => reason === 'unexpected text after the object'))
  })

  it('have keys of any length, and columns that the rows lack', () => {
    const lines = Array.from(
      { length: 9000 },
      (_, i) =>
        `{"b": ${i}, "a key that is longer than a step": ${i}.5, "d":-${i / 8},"c":"colour ${i % 5}", "label":${i % 2} }\n`
    )
    const schema = [...SCHEMA, { name: 'a key that is longer than a step', kind: 'number' }] as const
    const options = { schema, constant: true, hashBits: 10 }
    const [one, other] = [[lines.join('')], lines].map(pieces => parsed(pieces, options, 'jsonl'))
    assert.deepEqual(one, other)
    assert.equal(one.rows.length, 9000)
  })
})

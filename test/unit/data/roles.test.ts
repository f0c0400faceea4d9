/** Columns that are not features: weights and identifiers. Importance and tags of VW. */
import assert from 'node:assert/strict'
import {
  type ColumnSchema,
  checkedSchema,
  createParser,
  Layout,
  openStream,
  type ParserOptions,
  schemaText
} from '../../../src/data/index.js'
import { TimeReader } from '../../../src/data/schema/times.js'
import { openThreaded } from '../../../src/data/threads/open-in-thread.js'
import { withFiles } from '../../support/streams.js'

const schema: readonly ColumnSchema[] = [
  { name: 'age', kind: 'number' },
  { name: 'importance', kind: 'number', role: 'weight' },
  { name: 'order', kind: 'category', role: 'id' },
  { name: 'when', kind: 'ignored' }
]

function parse(format: 'csv' | 'jsonl' | 'vw', text: string, options: ParserOptions = {}) {
  const faults: string[] = []
  const onMalformed = ({ line, column, reason }: { line: number; column: number; reason: string }) =>
    faults.push(`${line}:${column}: ${reason}`)
  const table = format === 'vw' ? {} : { label: 'y', schema }
  const parser = createParser(format, { ...table, onMalformed, ...options })
  const rows = parser.push(Buffer.from(text))
  const { size, weights, ids, labels } = rows
  return {
    weights: Array.from({ length: size }, (_, row) => weights?.[row] ?? 1),
    isWeighted: weights !== undefined,
    ids: ids && [...ids],
    labels: [...labels.subarray(0, size)],
    faults,
    features: rows.offsets[size]
  }
}

describe('columns with a role', () => {
  it('are not features', () => {
    assert.equal(new Layout(schema, undefined).dimension, 1)
    assert.equal(schemaText(schema), 'age:number, importance:weight')
  })

  it('weigh and identify rows of CSV in any order of columns', () => {
    const text = 'order,y,importance,age,when\na 1,1,2.5,30,x\nb,0,0,31,\n,1,1,32,2024-01-01\n'
    const found = parse('csv', text, { ids: true })
    assert.deepEqual(found.faults, [])
    assert.deepEqual(found.weights, [2.5, 0, 1])
    assert.deepEqual(found.ids, ['a 1', 'b', ''])
    assert.equal(found.features, 3)
    assert.equal(parse('csv', text).ids, undefined)
  })

  it('weigh and identify rows of JSON lines', () => {
    const text = [
      '{"y": 1, "importance": 2, "age": 30, "order": 17}',
      '{"y": 1, "importance": 3, "order": "b", "features": {"age": 31}}',
      '{"features": {"age": 31}, "y": 0, "importance": "0.5"}',
      ''
    ].join('\n')
    const found = parse('jsonl', text, { ids: true })
    assert.deepEqual(found.faults, [])
    assert.deepEqual(found.weights, [2, 3, 0.5])
    assert.deepEqual(found.ids, ['17', 'b', undefined])
  })

  it('skip rows with a bad weight, and no others', () => {
    const values = ['-1', '', 'two', 'NaN', '1e99', '7']
    const csv = parse('csv', `age,importance,y\n${values.map(value => `1,${value},1\n`).join('')}`)
    assert.deepEqual(csv.weights, [7])
    const reason = (text: string) => `"${text}" in the column of weights "importance" is not a number of at least 0`
    assert.deepEqual(
      csv.faults,
      values.slice(0, 5).map((value, row) => `${row + 2}:3: ${reason(value)}`)
    )
    const jsonl = parse('jsonl', '{"y":1,"age":2}\n{"y":1,"importance":-1,"age":2}\n{"y":1,"importance":4,"age":2}\n')
    assert.deepEqual(jsonl.weights, [4])
    assert.deepEqual(jsonl.faults, ['1:1: the weight is missing (key "importance")', `2:21: ${reason('-1')}`])
  })

  it('need no weights for predictions', () => {
    assert.deepEqual(parse('csv', 'age\n1\n', { unlabelled: true }).weights, [1])
    const csv = parse('csv', 'age,importance\n1,x\n2,5\n', { unlabelled: true })
    assert.deepEqual([csv.weights, csv.faults], [[1, 5], []])
    assert.deepEqual(parse('jsonl', '{"age":1}\n', { unlabelled: true }).weights, [1])
    assert.throws(() => parse('csv', 'age,y\n1,1\n'), /has no column "importance", which the model needs/)
  })

  it('are inferred by their names', async () => {
    await withFiles(async write => {
      const data = await write('a.csv', `w,n,day,y\n${'2,1,2024-01-01,a\n1,2,2024-01-02,b\n'.repeat(30)}`)
      const options = { data, label: 'y', weight: 'w', ignore: ['day'], inferLabel: true } as const
      const stream = await openStream(options)
      assert.equal(stream.summary, 'label "y": classes a, b; weight "w"; 1 number, 1 ignored')
      assert.equal(stream.dimension, 1)
      await assert.rejects(openStream({ ...options, weight: 'u' }), /without "u": did you mean "w"/)
    })
  })

  it('keep weights and identifiers through shards, shuffles, skips and threads', async () => {
    await withFiles(async write => {
      const day = (row: number) => `2024-0${1 + (row % 9)}-1${row % 10}`
      const lines = Array.from({ length: 500 }, (_, row) => `${row % 7},${row % 5},r${row},${day(row)},1\n`)
      const data = await write('a.csv', `age,importance,order,when,y\n${lines.join('')}`)
      const options = { data, label: 'y', schema, ids: true, shuffleWindow: 20, shard: { index: 1, count: 3 } }
      let seen = 0
      for await (const rows of await openStream({ ...options, resume: 5 })) {
        for (let row = 0; row < rows.size; row++) {
          const number = Number(rows.ids?.[row]?.slice(1))
          assert.equal(number % 3, 1)
          assert.equal(rows.weights?.[row], number % 5)
          assert.equal(rows.values[rows.offsets[row]], number % 7)
          seen++
        }
      }
      assert.equal(seen, 167 - 5)
      const weights: number[] = []
      for await (const rows of await openThreaded({ data, label: 'y', schema })) {
        weights.push(...(rows.weights as Float32Array).subarray(0, rows.size))
      }
      assert.deepEqual(
        weights,
        lines.map((_, row) => row % 5)
      )
    })
  })

  it('have the times of dates, of numbers in any usual unit, and of nothing else', () => {
    const second = 1_709_231_400
    const texts = [
      ...[
        '2024-02-29 18:30:00',
        '2024-02-29T18:30',
        '2024-02-29 18:30:00.000Z',
        '2024-02-29 20:30+02:00',
        '2024/2/29 18:30'
      ],
      ...[1, 1e3, 1e6, 1e9].map(unit => String(BigInt(second) * BigInt(unit))),
      ...['2024-02-30', '2024-02-29 24:00:01', '2024-13-01', 'x', '', '1e99', '2024-02-29', '-1']
    ]
    const reader = new TimeReader()
    for (const [i, text] of texts.entries()) {
      const bytes = Buffer.from(`,${text},`)
      const expected = i < 9 ? 1000 * second : { '2024-02-29': Date.UTC(2024, 1, 29), '-1': -1000 }[text]
      const isTime = reader.read(bytes, 1, bytes.length - 1)
      assert.equal(isTime ? reader.utc : undefined, expected, text)
    }
  })

  it('are checked in a schema', () => {
    const wrong = (columns: unknown, reason: RegExp) =>
      assert.throws(() => checkedSchema({ columns }, 'a.yaml'), reason)
    wrong([{ name: 'a', kind: 'number', role: 'wait' }], /role must be one of feature, weight, id:/)
    wrong(
      [
        { name: 'a', kind: 'number', role: 'weight' },
        { name: 'b', kind: 'number', role: 'weight' }
      ],
      /give the role weight to one column/
    )
    assert.deepEqual(checkedSchema({ columns: schema }, 'a.yaml').columns, schema)
    assert.deepEqual(checkedSchema({ columns: [{ name: 'a', kind: 'number', role: 'feature' }] }, 'a.yaml').columns, [
      { name: 'a', kind: 'number' }
    ])
  })
})

describe('VW text', () => {
  it('weighs rows by their importance, and identifies them by their tags', () => {
    const found = parse('vw', "1 2.5 'first| a\n-1 second| a\n1 0 | a\n1 1| b\n", { ids: true })
    assert.deepEqual(found.faults, [])
    assert.deepEqual(found.weights, [2.5, 1, 0, 1])
    assert.deepEqual(found.ids, ['first', 'second', undefined, '1'])
    assert.equal(parse('vw', '1 | a\n-1 1 | b\n').isWeighted, false)
  })
})

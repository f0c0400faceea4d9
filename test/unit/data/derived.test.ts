/** Interactions and lags by options and in schemas: what is accepted, and what is refused in one line. */
import assert from 'node:assert/strict'
import {
  type ColumnSchema,
  checkedSchema,
  createParser,
  openStream,
  type StreamOptions,
  schemaText
} from '../../../src/data/index.js'
import { plainStream, withFiles } from '../../support/streams.js'

const text = `a,b,c,y\n${'1,2,x,3.5\n2,1,y,4.25\n'.repeat(30)}`

describe('interactions and lags', () => {
  const open = (more: Partial<StreamOptions>, content = text, name = 'a.csv') =>
    withFiles(async write => {
      const data = await write(name, content)
      const stream = await openStream({ data, label: 'y', inferLabel: true, ...more })
      return { schema: stream.schema ?? [], summary: stream.summary, rows: await plainStream(stream) }
    })

  it('are columns of the schema, which a file or a second option does not add twice', async () => {
    const options = { interactions: [['c', 'a'] as const, ['a', 'b'] as const], lags: { y: [1, 24], a: [2] } }
    const { schema, summary } = await open(options)
    const made = 'a:b:interaction(a×b), a:c:interaction(a×c), a lag 2:lag(a2)?, y lag 1:lag(y1)?, y lag 24:lag(y24)?'
    const sorted = (list: string) => list.split(', ').sort()
    assert.deepEqual(sorted(schemaText(schema)), sorted(`a:number, b:number, c:category, ${made}`))
    assert.equal(summary, 'label "y": a number; 2 numbers, 1 category, 2 interactions, 3 lags')
    const checked = checkedSchema({ label: { name: 'y', kind: 'number' }, columns: schema }, 'a.yaml')
    assert.deepEqual(checked.columns, schema)
    assert.deepEqual((await open({ ...options, schema })).schema, schema)
  })

  it('are read from JSON lines with a schema', async () => {
    const schema: readonly ColumnSchema[] = [
      { name: 'a', kind: 'number' },
      { name: 'b', kind: 'number' }
    ]
    const json = '{"a":2,"b":3,"y":1}\n{"b":1,"a":5,"y":0}\n'
    const { rows } = await open({ schema, interactions: [['a', 'b']], inferLabel: false }, json, 'a.jsonl')
    assert.deepEqual(
      rows.map(({ features }) => features.map(([, value]) => value)),
      [
        [2, 3, 6],
        [1, 5, 5]
      ]
    )
    const sparse = Array.from({ length: 40 }, (_, i) => `{"y":1,"k${i}":1}\n`).join('')
    await assert.rejects(open({ interactions: [['a', 'b']] }, sparse, 'a.jsonl'), /sparse JSON lines need a schema/)
  })

  it('begin a pass without rows before', async () => {
    const { rows } = await open({ lags: { y: [1] }, passes: 2, scale: 'none' }, 'y\n1.5\n2.5\n')
    const lag = rows.map(({ features }) => features.map(([, value]) => value))
    assert.deepEqual(lag, [[1], [1.5], [1], [1.5]])
  })

  it('that do not fit the data are refused', async () => {
    const refused: readonly [Partial<StreamOptions>, RegExp][] = [
      [{ interactions: [['a', 'e']] }, /"a:e" needs the column "e", which the data do not have: check its spelling/],
      [{ lags: { e: [1] } }, /"e lag 1" needs the column "e"/],
      [{ lags: { c: [1] } }, /"c lag 1" is made from numbers, and "c" is category/],
      [{ lags: { a: [0] } }, /rows must be a whole number from 1/],
      [{ interactions: [['c', 'c']] }, /a category has no square/],
      [{ interactions: [['a', 'y']] }, /needs the column "y"/],
      [{ lags: { a: [1] }, shuffleWindow: 5 }, /lags need rows in their order/],
      [{ lags: { a: [1] }, holdout: { every: 5, part: 'learn' } }, /lags need rows in their order/],
      [{ weight: 'a', interactions: [['a', 'b']] }, /"a" is weight/]
    ]
    for (const [options, reason] of refused) await assert.rejects(open(options), reason)
  })

  it('that are invalid in a schema are refused', () => {
    const wrong = (column: object, reason: RegExp) => {
      const columns = [
        { name: 'a', kind: 'number' },
        { name: 'm', ...column }
      ]
      assert.throws(() => checkedSchema({ columns }, 'a.yaml'), reason)
    }
    wrong({ kind: 'lag', of: 'a' }, /rows must be a whole number from 1/)
    wrong({ kind: 'lag', of: ['a', 'a'], rows: 1 }, /give one column as of/)
    wrong({ kind: 'interaction', of: ['a'] }, /give two columns as of/)
    wrong({ kind: 'interaction', of: 3 }, /of must be a list of columns/)
    wrong({ kind: 'number', of: ['a'] }, /are for interactions and lags/)
    const made = { name: 'l', kind: 'lag', of: ['label'], rows: 3, mean: 1, deviation: 2 }
    assert.deepEqual(checkedSchema({ columns: [made] }, 'a.yaml').columns, [made])
  })

  it('need rows in the order of their times, if there is a column of times', () => {
    const schema: readonly ColumnSchema[] = [
      { name: 'a', kind: 'number' },
      { name: 'at', kind: 'time', role: 'time' }
    ]
    const parse = (times: readonly string[], columns = schema) => {
      const faults: string[] = []
      const parser = createParser('csv', {
        schema: columns,
        label: 'y',
        onMalformed: ({ line, reason }) => faults.push(`${line}: ${reason}`)
      })
      parser.push(Buffer.from(`a,at,y\n${times.map(time => `1,${time},1\n`).join('')}`))
      return faults
    }
    const lagged: readonly ColumnSchema[] = [...schema, { name: 'l', kind: 'lag', of: ['a'], rows: 1 }]
    const times = ['2024-03-01', '2024-03-01 10:00', '2024-02-01', '2024-03-01 10:00:01', 'soon']
    assert.deepEqual(parse(times), [])
    assert.deepEqual(parse(times, lagged), [
      '4: the time "2024-02-01" is before that of an earlier row, and lags need the order of rows: sort the file',
      '6: "soon" is not a time such as 2024-02-29 18:30 or 1709231400, and lags need the order of rows'
    ])
    assert.deepEqual(
      parse(['2024-10-27T02:30:00+02:00', '2024-10-27T02:10:00+01:00', '2024-10-27T01:30:00Z'], lagged),
      []
    )
    assert.deepEqual(parse(['10', '9', '11'], lagged).length, 1)
  })
})

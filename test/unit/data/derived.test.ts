/** Interactions by options and in schemas: what is accepted, and what is refused in one line. */
import assert from 'node:assert/strict'
import {
  type ColumnSchema,
  checkedSchema,
  openStream,
  type StreamOptions,
  schemaText
} from '../../../src/data/index.js'
import { plainStream, withFiles } from '../../support/streams.js'

const text = `a,b,c,y\n${'1,2,x,3.5\n2,1,y,4.25\n'.repeat(30)}`

describe('interactions', () => {
  const open = (more: Partial<StreamOptions>, content = text, name = 'a.csv') =>
    withFiles(async write => {
      const data = await write(name, content)
      const stream = await openStream({ data, label: 'y', inferLabel: true, ...more })
      return { schema: stream.schema ?? [], summary: stream.summary, rows: await plainStream(stream) }
    })

  it('are columns of the schema, which a file or a second option does not add twice', async () => {
    const options = { interactions: [['c', 'a'] as const, ['a', 'b'] as const] }
    const { schema, summary } = await open(options)
    const made = 'a:b:interaction(a×b), a:c:interaction(a×c)'
    const sorted = (list: string) => list.split(', ').sort()
    assert.deepEqual(sorted(schemaText(schema)), sorted(`a:number, b:number, c:category, ${made}`))
    assert.equal(summary, 'label "y": a number; 2 numbers, 1 category, 2 interactions')
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

  it('that do not fit the data are refused', async () => {
    const refused: readonly [Partial<StreamOptions>, RegExp][] = [
      [{ interactions: [['a', 'e']] }, /"a:e" needs the column "e", which the data do not have: check its spelling/],
      [{ interactions: [['c', 'c']] }, /a category has no square/],
      [{ interactions: [['a', 'y']] }, /needs the column "y"/],
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
    wrong({ kind: 'interaction', of: ['a'] }, /give two columns as of/)
    wrong({ kind: 'interaction', of: 3 }, /of must be a list of columns/)
    wrong({ kind: 'number', of: ['a'] }, /of is for interactions/)
    wrong({ kind: 'lag', of: 'a' }, /kind must be one of/)
  })
})

/** What the first rows say of the label, of columns and of a file's dialect. */
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { SchemaError } from '../../../src/data/errors.js'
import { openStream } from '../../../src/data/open.js'
import { inferColumns, plainColumn } from '../../../src/data/schema/columns.js'
import { sniffDialect } from '../../../src/data/schema/dialect.js'
import { inferLabel } from '../../../src/data/schema/infer.js'
import { checkedSchema } from '../../../src/data/schema/schema.js'
import { plainStream, withFiles } from '../../support/streams.js'

const label = (labels: readonly (string | number)[], hints = {}) => inferLabel(labels.map(String), hints, 'the label')
const times = <T>(count: number, value: (i: number) => T) => Array.from({ length: count }, (_, i) => value(i))

describe('the label', () => {
  it('is a class number if it is one, or −1 and +1', () => {
    assert.deepEqual(label([0, 1, 1, 0]), { kind: 'class', classes: 2 })
    assert.deepEqual(label(['-1', '+1', '1.0']), { kind: 'class', classes: 2 })
    assert.deepEqual(label([1, 1]), { kind: 'class', classes: 2 })
    assert.deepEqual(label([0, 2, 1, 4]), { kind: 'class', classes: 5 })
    assert.deepEqual(label([0, 1, 2], { classes: 10, target: 'class' }), { kind: 'class', classes: 10 })
  })

  it('is a name otherwise, in an order that does not depend on the rows', () => {
    for (const rows of [
      ['no', 'yes', 'no'],
      ['yes', 'no']
    ]) {
      assert.deepEqual(label(rows), { kind: 'class', names: ['no', 'yes'], classes: 2 })
    }
    assert.deepEqual(label([10, 2, 1]), { kind: 'class', names: ['1', '2', '10'], classes: 3 })
    assert.deepEqual(label([-1, 0, 1]), { kind: 'class', names: ['-1', '0', '1'], classes: 3 })
  })

  it('is a number to predict if there are fractions, or too many values', () => {
    assert.deepEqual(label([1.5, 2, 3]), { kind: 'number', mean: 2.25, deviation: 0.5 })
    assert.deepEqual(label(times(200, i => i)), { kind: 'number', mean: 96, deviation: 64 })
    assert.deepEqual(label(times(2000, i => i % 26)), { kind: 'class', classes: 26 })
    assert.deepEqual(label([1, 2], { target: 'number' }), { kind: 'number', mean: 1.5, deviation: 0.5 })
    assert.deepEqual(
      label(
        times(26, i => i),
        { target: 'class' }
      ),
      { kind: 'class', classes: 26 }
    )
  })

  it('is a number in any notation, also with a few texts, and a name if it has leading zeros', () => {
    assert.equal(
      label(
        times(50, i => `1.${100 + i},50`),
        { decimal: ',' }
      )?.kind,
      'number'
    )
    assert.equal(label(times(50, i => `$1,${100 + i}.50`))?.kind, 'number')
    assert.equal(label(times(50, i => (i === 7 ? 'unknown' : `${i}.5`)))?.kind, 'number')
    assert.equal(
      label(
        times(50, i => (i === 7 ? '-' : `${i}.5`)),
        { target: 'number' }
      )?.kind,
      'number'
    )
    assert.deepEqual(label(['+', '-', '+']), { kind: 'class', names: ['+', '-'], classes: 2 })
    assert.deepEqual(label(['007', '012', '007']), { kind: 'class', names: ['007', '012'], classes: 2 })
    assert.equal(label(['1,3', '2', '1,2'], { hasColumns: false })?.kind, 'class')
  })

  it('must fit the model', () => {
    const cases: [readonly (string | number)[], object, RegExp][] = [
      [
        times(300, i => i % 26),
        { target: 'class', classes: 2 },
        /has 26 classes \(0, 1, .*\) in the first rows, and the model 2: choose/
      ],
      [['a', 'b'], { classes: 3 }, /has 2 classes \(a, b\) in the first rows, and the model 3: give all class names/],
      [['a', 'a'], {}, /has only the class "a" in the first rows: give all class names/],
      [['UP', 'DOWN'], { target: 'number' }, /has the value "UP", and the model predicts numbers/],
      [times(500, i => `user${i}`), {}, /has 500 different texts in 500 rows: check that it is the label/]
    ]
    for (const [labels, hints, message] of cases) {
      assert.throws(
        () => label(labels, hints),
        (error: Error) => error instanceof SchemaError && message.test(error.message)
      )
    }
    assert.equal(label([]), undefined)
  })
})

describe('the columns', () => {
  it('are sorted, with the kind of most of their values', () => {
    const values = {
      z: ['1', '2', 'NA', '4'],
      when: ['2024-01-01', '2024-02-29', '2023-12-31', ''],
      text: ['one two three four', 'it is a long text', 'another long text here', 'five words are in this'],
      city: ['Bern', '7', 'Bern', 'Rome'],
      never: ['', '', '', ''],
      code: ['1', '2', '3', '4']
    }
    const columns = inferColumns(Object.keys(values), Object.values(values), { categorical: ['code'], text: 'bigrams' })
    assert.deepEqual(columns.map(plainColumn), [
      { name: 'city', kind: 'category' },
      { name: 'code', kind: 'category' },
      { name: 'never', kind: 'number', missing: true },
      { name: 'text', kind: 'text', bigrams: true },
      { name: 'when', kind: 'time', missing: true },
      { name: 'z', kind: 'number', missing: true }
    ])
    assert.deepEqual(
      columns.map(({ missingShare }) => missingShare),
      [0, 0, 1, 0, 0.25, 0.25]
    )
  })
})

describe('the dialect', () => {
  const sniff = (text: string) => sniffDialect(Buffer.from(text), {}, 'a.csv')

  it('is found in the first rows', () => {
    assert.deepEqual(sniff('a,b\n1,2\n'), { delimiter: ',', header: true })
    assert.deepEqual(sniff('a;b\n1,5;2\n3,25;x\n'), { delimiter: ';', header: true })
    assert.deepEqual(sniff('a\tb, c\n1\t2\n'), { delimiter: '\t', header: true })
    assert.deepEqual(sniff('a|b\n"x,y;z"|2\n'), { delimiter: '|', header: true })
    assert.deepEqual(sniff('a\n1\n'), { delimiter: ',', header: true })
    assert.deepEqual(sniff('2019,2020,label\nx,y,1\n').header, true)
    assert.throws(() => sniff('5.1,3.5,setosa\n4.9,3.0,setosa\n'), /the first line is a row/)
  })
})

describe('a schema from a file', () => {
  it('is checked', () => {
    const cases: [unknown, RegExp][] = [
      [[], /expected the keys label and columns/],
      [{ colums: [] }, /unknown key "colums"/],
      [{ columns: [{ name: 'a' }] }, /column "a": kind must be one of number, category/],
      [
        {
          columns: [
            { name: 'a', kind: 'number' },
            { name: 'a', kind: 'text' }
          ]
        },
        /name each column once/
      ],
      [{ columns: [{ name: 'a', kind: 'number', mean: 1 }] }, /give both mean and deviation/],
      [{ columns: [{ name: 'a', kind: 'number', mean: 1, deviation: 0 }] }, /deviation above 0/],
      [{ columns: [{ name: 'a', kind: 'number', decimal: ';' }] }, /decimal must be "\.", "," or both/],
      [{ columns: [{ name: 'a', kind: 'time', order: 'ydm' }] }, /order must be mdy, dmy or ymd/],
      [{ columns: [{ name: 'a', kind: 'number', origin: 'x' }] }, /origin must be a number/],
      [{ columns: [{ name: 'a', kind: 'number', na: 3 }] }, /na must be a list of texts/],
      [{ columns: [{ name: 'a', kind: 'text', mean: 1, deviation: 1 }] }, /only a number or a time can be scaled/],
      [{ label: { kind: 'label' } }, /kind must be class or number/],
      [{ label: { kind: 'class', names: ['a'] } }, /at least two names/],
      [{ hashBits: 31 }, /hashBits must be a whole number from 1 to 30/]
    ]
    for (const [value, message] of cases) assert.throws(() => checkedSchema(value, 's.yaml'), message)
    const schema = {
      label: { kind: 'class', names: ['no', 'yes'] },
      columns: [
        { name: 'a', kind: 'time', missing: true, order: 'dmy', origin: 19_000, na: ['never'] },
        { name: 'b', kind: 'number', decimal: ',', origin: 5 },
        { name: 'c', kind: 'time', mean: 19_000, deviation: 3 },
        { name: 'd', kind: 'number', role: 'weight', decimal: ',' }
      ]
    }
    assert.deepEqual(checkedSchema(schema, 's.yaml'), schema)
  })
})

describe('standard input', () => {
  it('is read on from its first rows, which determine its schema', async () => {
    const rows = times(20_000, i => `${i},${i % 2 === 0 ? 'b' : 'a'}\n`)
    const chunks = Readable.from(['x,y\n', ...rows].map(row => Buffer.from(row)))
    const stream = await openStream({ data: '-', format: 'csv', label: 'y', inferLabel: true, stdin: chunks })
    assert.deepEqual(stream.label?.names, ['a', 'b'])
    const read = await plainStream(stream)
    assert.equal(read.length, 20_000)
    assert.deepEqual(read[19_999], { label: 0, features: [[0, 19_999]] })
  })

  it('is not waited for once there are rows', async () => {
    const stdin = new Readable({ read() {} })
    stdin.push('1 1:1\n0 2:1\n1 1:1\n')
    const stream = await openStream({ data: '-', format: 'libsvm', inferLabel: true, stdin })
    stdin.push('0 3:1\n')
    stdin.push(null)
    assert.equal((await plainStream(stream)).length, 4)
  })

  it('reports damage after the rows before it', async () => {
    await withFiles(async () => {
      const stdin = new Readable({ read() {} })
      stdin.push('1 1:1\n0 2:1\n')
      setTimeout(() => stdin.destroy(new Error('the line broke')), 20)
      const stream = await openStream({ data: '-', format: 'libsvm', inferLabel: true, stdin })
      let rows = 0
      await assert.rejects(async () => {
        for await (const batch of stream) rows += batch.size
      }, /the line broke/)
      assert.equal(rows, 2)
    })
  })
})

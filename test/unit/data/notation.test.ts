/** Numbers and times as people write them, and how a column decides what is ambiguous. */
import assert from 'node:assert/strict'
import { openStream } from '../../../src/data/open.js'
import { MissingValues } from '../../../src/data/schema/categories.js'
import { inferColumns, inferNotation, plainColumn } from '../../../src/data/schema/columns.js'
import { type DecimalMark, marksOf, numberOf } from '../../../src/data/schema/numbers.js'
import { type DateOrder, TimeReader } from '../../../src/data/schema/times.js'
import { parseText, plainStream, withFiles } from '../../support/streams.js'

const times = <T>(count: number, value: (i: number) => T) => Array.from({ length: count }, (_, i) => value(i))
const kindOf = (values: readonly string[], hints = {}) => plainColumn(inferColumns(['x'], [values], hints)[0])
const remarksOf = (values: readonly string[]) =>
  (inferColumns(['x'], [values], {})[0].remarks ?? []).map(one => one.line)

describe('a number', () => {
  const cases: [text: string, value: number | undefined, decimal?: DecimalMark][] = [
    ['1.234', 1.234],
    ['1.234', 1234, ','],
    ['1,234', 1234],
    ['1,234', 1.234, ','],
    ['1,234', 1.234, 'both'],
    ['0,567', 0.567],
    ['1234,567', 1234.567],
    ['1,5', 1.5],
    [',5', 0.5],
    ['5.', 5],
    ['1,234,567.89', 1_234_567.89],
    ['1.234.567,89', 1_234_567.89],
    ['12,34,567', 1_234_567],
    ['1 234 567,8', 1_234_567.8],
    ['1\u00a0234', 1234],
    ['1\u202f234,5', 1234.5],
    ["1'234.5", 1234.5],
    ['CHF 1’234.50', 1234.5],
    ['12.5%', 12.5],
    ['12,5 %', 12.5],
    ['$-0.66', -0.66],
    ['-$1,234.50', -1234.5],
    ['(12.50)', -12.5],
    ['€ 1.299,99', 1299.99],
    ['12,5 EUR', 12.5],
    ['R$ 5', 5],
    ['−0.66', -0.66],
    ['12-', -12],
    ['１２３', 123],
    ['٣٫٥', 3.5],
    ['1e-5', 1e-5],
    ['1,5E3', 1500],
    ...[
      '',
      '-',
      '.',
      '1.2.3',
      '10.0.0.1',
      '1,2,3',
      '1-2',
      '12:30',
      '2024-01-01',
      '12a',
      '1 2',
      '0x10',
      'inf',
      '--1',
      '1e400'
    ].map(text => [text, undefined] as [string, undefined])
  ]
  it('is read in any notation', () => {
    for (const [text, value, decimal] of cases) assert.equal(numberOf(text, decimal), value, `${text} with ${decimal}`)
  })
})

describe('the marks of a column', () => {
  const decide = (values: readonly string[], usual?: DecimalMark) => marksOf(values).decide(usual)

  it('follow from numbers in which they can mean one thing only', () => {
    assert.equal(decide(['1,5', '1,234']).decimal, ',')
    assert.equal(decide(['1.5', '1,234']).decimal, undefined)
    assert.equal(decide(['1.299,99', '1.234']).decimal, ',')
    assert.equal(decide(['1,234,567', '1,234']).decimal, undefined)
    assert.equal(decide(['1.234.567', '1.234']).decimal, ',')
    assert.equal(decide(['1.317', '-0.857', '0,661', '1,268']).decimal, 'both')
  })

  it('follow from numbers without marks, or from other columns', () => {
    assert.deepEqual(decide(['299', '5,584']), { decimal: undefined, isGuess: false })
    assert.equal(decide(['5,584', '12345']).decimal, ',')
    assert.equal(decide(['950', '1.500', '7.000', '2.250']).decimal, ',')
    assert.equal(decide(['1.234', '2.345'], ',').decimal, ',')
    assert.equal(decide(['1,234', '2,345'], ',').decimal, ',')
    assert.deepEqual(decide(['1.234', '2.345']), { decimal: undefined, isGuess: false })
    assert.deepEqual(decide(['1,234', '2,345']), { decimal: undefined, isGuess: true })
  })

  it('are said where they are a guess or contradict each other', () => {
    assert.match(
      remarksOf(times(20, i => `${i + 1},234`)).join(),
      /"1,234" in the column "x" is read as 1234: give --decimal ,/
    )
    assert.match(
      remarksOf(['1.5', '2.5', '3,25']).join(),
      /has a decimal comma in some numbers and a decimal point in others \(1 of 3\)/
    )
  })

  it('may differ from column to column, and are those of the file for a known column', () => {
    const columns = inferColumns(
      ['a', 'b'],
      [
        ['0,779', '1,5'],
        ['1.317', '-0.857']
      ],
      {}
    ).map(plainColumn)
    assert.deepEqual(columns, [
      { name: 'a', kind: 'number', decimal: ',' },
      { name: 'b', kind: 'number' }
    ])
    const written = inferNotation(
      columns,
      new Map([
        ['a', ['1.5', '2.25']],
        ['b', ['1,234', '95']]
      ]),
      {}
    ).map(plainColumn)
    assert.deepEqual(written, [
      { name: 'a', kind: 'number' },
      { name: 'b', kind: 'number' }
    ])
    assert.deepEqual(inferNotation(columns, new Map([['a', ['12']]]), {}).map(plainColumn)[0], columns[0])
  })

  it('that contradict the first rows are reported once, and read as they are written', () => {
    const schema = [{ name: 'x', kind: 'number' as const }]
    const notices: string[] = []
    const { rows } = parseText('csv', 'x;label\n1.5;1\n3,25;1\n4,5;0\n', {
      schema,
      delimiter: ';',
      onNotice: line => notices.push(line)
    })
    assert.deepEqual(
      rows.map(({ features }) => features[0][1]),
      [1.5, 3.25, 4.5]
    )
    assert.equal(notices.length, 1)
    assert.match(notices[0], /"3,25" in the column "x" has a decimal comma and is read as 3.25/)
  })
})

describe('thousands marks that the first rows lack', () => {
  it('are reported once', async () => {
    await withFiles(async write => {
      const late = '"1,268",1\n'.repeat(3)
      const read = async (text: string) => {
        const notices: string[] = []
        await plainStream(await openStream({ data: await write('a.csv', text), onNotice: line => notices.push(line) }))
        return notices
      }
      const rows = (value: string) => `x,label\n${`"${value}",0\n`.repeat(11_000)}`
      assert.match(
        (await read(rows('0.25') + late)).join(),
        /a\.csv: "1,268" in the column "x" is read as 1268, but no number of the first rows/
      )
      assert.deepEqual(await read(rows('2,250.5') + late), [])
      assert.match(
        (await read(rows('0,25') + '"1.268",1\n'.repeat(3))).join(),
        /"1\.268" in the column "x" is read as 1268/
      )
    })
  })
})

describe('missing values', () => {
  it('are the usual marks in any case; infinite numbers only among numbers', () => {
    const [numbers, others, labels] = [
      new MissingValues(undefined, 'number'),
      new MissingValues(),
      new MissingValues(undefined, 'label')
    ]
    for (const mark of [
      '',
      'na',
      'N/a',
      '#N/A',
      '<NA>',
      '\\N',
      '-',
      '.',
      '--',
      'Null',
      'NONE',
      'nAn',
      '#DIV/0!',
      '?'
    ]) {
      assert.ok(numbers.has(mark) && others.has(mark), mark)
    }
    for (const mark of ['inf', '-Inf', 'Infinity', '∞'])
      assert.deepEqual([numbers.has(mark), others.has(mark)], [true, false], mark)
    for (const text of ['nab', 'no', '0', '+', 'banana']) assert.ok(!numbers.has(text) && !others.has(text), text)
    // A class may be called so.
    for (const text of ['-', '.', 'none', '*']) assert.ok(!labels.has(text), text)
    for (const mark of ['', 'NA', 'null', '<NA>', '\\N']) assert.ok(labels.has(mark), mark)
    assert.ok(!new MissingValues(['x']).has('NA'))
  })

  it('do not make a number a category, and are named', () => {
    for (const mark of ['inf', '-', 'n/a', '\\N', 'unknown', 'not measured']) {
      const values = times(100, i => (i % 10 === 0 ? mark : `${i}.5`))
      const { kind, missing } = kindOf(values)
      assert.deepEqual([kind, missing], ['number', true], mark)
      const { rows, faults } = parseText('csv', `x,label\n1.5,1\n"${mark}",0\n`, { schema: [kindOf(values)] })
      assert.deepEqual(faults, [])
      assert.deepEqual(rows[1].features, [[1, 1]], mark)
    }
    const [{ odd }] = inferColumns(['x'], [times(100, i => (i % 10 === 0 ? 'see note' : `${i}.5`))], {})
    assert.deepEqual(odd, [['see note', 0.1]])
  })

  it('may be any text of a column with many different ones', () => {
    const column = kindOf(times(1000, i => (i % 5 === 0 ? `see note ${i}` : `${i}.5`)))
    assert.deepEqual(column, { name: 'x', kind: 'number', missing: true, na: ['*'] })
    assert.deepEqual(parseText('csv', 'x,label\nsee note 1001,1\n', { schema: [column] }).rows[0].features, [[1, 1]])
    assert.equal(kindOf(times(100, i => (i % 5 === 0 ? '*' : `${i}.5`))).na?.includes('*'), false)
  })

  it('that the first rows lack are said once', () => {
    const notices: string[] = []
    const schema = [{ name: 'x', kind: 'number' as const, missing: true }]
    parseText('csv', 'x,label\n1,1\n-,0\n-,1\n,1\n', { schema, onNotice: line => notices.push(line) })
    assert.deepEqual(notices, ['<input>: "-" in the column "x" counts as missing, unlike in the first rows'])
  })

  it('leave few numbers among many texts a category, and codes with leading zeros too', () => {
    assert.equal(kindOf(times(100, i => ['1', '2', '3', 'A', 'B'][i % 5])).kind, 'category')
    assert.equal(kindOf(['007', '012', '113']).kind, 'category')
    assert.equal(kindOf(['02134', '90210', '2139']).kind, 'category')
    assert.equal(kindOf(['07', '12', '11']).kind, 'number')
    assert.equal(kindOf(times(1000, i => (i === 3 ? '003' : `${i}`))).kind, 'number')
    assert.equal(kindOf(['000', '1', '25']).kind, 'number')
  })
})

describe('a time', () => {
  const at = Date.UTC(2024, 1, 29, 18, 30)
  const read = (text: string, order?: DateOrder) => {
    const reader = new TimeReader(order)
    const bytes = Buffer.from(`,${text},`)
    return reader.read(bytes, 1, bytes.length - 1) ? reader : undefined
  }

  it('is read in all usual notations', () => {
    const texts = [
      ...[
        '2024-02-29T18:30:00Z',
        '2024-02-29 18:30:00+00',
        '2024-02-29 18:30:00 UTC',
        '2024-02-29 18:30:00.000000+00:00'
      ],
      ...['20240229T183000Z', '20240229T1830', '202402291830', '20240229183000', '2024-060T18:30', '2024-W09-4T18:30'],
      ...['02/29/2024 18:30', '2/29/24 6:30 PM', '29.02.2024 18:30', '29/02/2024 06:30:00 p.m.', '29-2-2024 18:30'],
      ...[
        '29 Feb 2024 18:30',
        'Feb 29, 2024 6:30PM',
        '29-Feb-24 18:30',
        'Thu, 29 Feb 2024 18:30:00 GMT',
        '29. Februar 2024 18:30'
      ],
      ...[
        'Thu Feb 29 18:30:00 2024',
        '29/Feb/2024:18:30:00 +0000',
        '2024年2月29日 18:30',
        '1709231400',
        '1709231400000'
      ],
      ...[
        '2024-02-29 19:30 CET',
        '2024-02-29T20:30:00+02:00',
        '2024-02-29 13:30:00-0500',
        '2024.02.29 18:30',
        '2024/2/29 18:30'
      ]
    ]
    for (const text of texts) assert.equal(read(text)?.utc, at, text)
    assert.equal(read('2024-02-29T24:00')?.utc, Date.UTC(2024, 2, 1))
    assert.equal(read('2024-02-29 18:30:00.25')?.utc, at + 250)
  })

  it('may be a date or a time of day alone', () => {
    for (const text of ['2024-02-29', '20240229', '02/29/2024', '29.2.24']) {
      const found = read(text)
      assert.deepEqual([found?.utc, found?.hasClock], [Date.UTC(2024, 1, 29), false], text)
    }
    for (const text of ['18:30', '18:30:00', '6:30 pm']) {
      const found = read(text)
      assert.deepEqual([found?.local, found?.hasDate], [18.5 * 3_600_000, false], text)
    }
  })

  it('does not exist with wrong parts', () => {
    for (const text of [
      '2024-02-30',
      '0000-00-00',
      '2024-13-01',
      '31.02.2024',
      '13:70',
      '25:00',
      '14:30 PM',
      'soon',
      '',
      '1.2',
      'abc 12'
    ]) {
      if (text !== '1.2') assert.equal(read(text), undefined, text)
    }
  })

  it('has the order of the column where that matters', () => {
    assert.equal(read('02/03/2024', 'mdy')?.utc, Date.UTC(2024, 1, 3))
    assert.equal(read('02/03/2024', 'dmy')?.utc, Date.UTC(2024, 2, 2))
    assert.equal(read('02/29/2024', 'dmy')?.utc, Date.UTC(2024, 1, 29))
    assert.equal(read('24-02-03', 'ymd')?.utc, Date.UTC(2024, 1, 3))
    const day = (i: number) =>
      [i + 1, Math.floor(i / 28) + 1].map(part => String(((part - 1) % 28) + 1).padStart(2, '0'))
    assert.deepEqual(kindOf(times(60, i => `${day(i)[0]}/${day(i)[1]}/2024`)), {
      name: 'x',
      kind: 'time',
      order: 'dmy'
    })
    assert.deepEqual(kindOf(times(60, i => `${day(i)[1]}/${day(i)[0]}/2024`)), {
      name: 'x',
      kind: 'time',
      order: 'mdy'
    })
    // Every number is a month, but only one order sorts the rows.
    assert.equal(kindOf(times(60, i => `${(i % 12) + 1}/${Math.floor(i / 12) + 1}/2024`)).order, 'dmy')
    assert.match(
      remarksOf(times(20, i => `${(i % 5) + 1}/${(i % 3) + 1}/2024`)).join(),
      /dates such as 1\/1\/2024 in the column "x" are read as month\/day\/year/
    )
    assert.match(
      remarksOf(['13/01/2024', '14/01/2024', '01/20/2024']).join(),
      /1 of 3 dates of the column "x" are not in the order day\/month\/year/
    )
  })

  it('is the kind of a column despite bad values, which are missing', () => {
    const values = times(50, i =>
      i === 7 ? 'broken' : i === 9 ? '0000-00-00' : `2024-01-${String((i % 28) + 1).padStart(2, '0')} 10:00:00+00`
    )
    const column = kindOf(values)
    assert.deepEqual(column, { name: 'x', kind: 'time', missing: true, na: ['broken', '0000-00-00'] })
    const { rows, faults } = parseText('csv', 'x,label\nbroken,1\n2024-02-31,1\n2024-02-01,1\n', { schema: [column] })
    assert.deepEqual(faults, [])
    assert.deepEqual(
      rows.map(({ features }) => features.length),
      [1, 1, 5]
    )
  })

  it('is the kind of numbers that are dates, or times since 1970 over some days', () => {
    assert.equal(kindOf(times(28, i => `202402${String(i + 1).padStart(2, '0')}`)).kind, 'time')
    assert.equal(kindOf(times(50, i => String(1_709_231_400 + 7200 * i))).kind, 'time')
    assert.equal(kindOf(times(50, i => String(1_709_231_400_000 + 7_200_000 * i))).kind, 'time')
    assert.equal(kindOf(times(50, i => String(1_709_231_400 + i))).kind, 'number')
    assert.equal(kindOf(times(50, i => String(10_000_000 + 7919 * i))).kind, 'number')
  })
})

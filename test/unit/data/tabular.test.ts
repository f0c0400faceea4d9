/** Columns are the same features in any order of a file's columns, and as keys of JSON objects. */
import assert from 'node:assert/strict'
import { type ColumnSchema, createParser, inferColumns, type ParserOptions } from '../../../src/data/index.js'

const schema: readonly ColumnSchema[] = [
  { name: 'age', kind: 'number', missing: true },
  { name: 'income', kind: 'number' },
  { name: 'region', kind: 'category' },
  { name: 'review', kind: 'text', bigrams: true },
  { name: 'when', kind: 'time', missing: true }
]
const options: ParserOptions = { label: 'y', schema, constant: true }

const parse = (format: 'csv' | 'jsonl', text: string, more: ParserOptions = {}) => {
  const rows = createParser(format, { ...options, strict: true, ...more }).push(Buffer.from(text))
  const found = Array.from({ length: rows.size }, (_, row) => {
    const entries: [number, number][] = []
    for (let p = rows.offsets[row]; p < rows.offsets[row + 1]; p++) entries.push([rows.indices[p], rows.values[p]])
    return entries.sort((a, b) => a[0] - b[0] || a[1] - b[1])
  })
  return { found, labels: [...rows.labels.subarray(0, rows.size)], numeric: [...rows.numeric.subarray(0, rows.size)] }
}

/** Without the hashed range, which starts at the constant feature, two numbers, a time and two indicators. */
const dense = (entries: [number, number][]) => entries.filter(([index]) => index < 1 + 2 + 7 + 2)

describe('columns of a schema', () => {
  const expected = parse('csv', 'age,income,region,review,when,y\n18,1658,east,so very good,2024-02-29 18:00,1\n')

  it('are found in a file with another order, with further columns', () => {
    const text = 'when,region,y,id,review,income,age\n2024-02-29 18:00,east,1,x7,so very good,1658,18\n'
    assert.deepEqual(parse('csv', text), expected)
  })

  it('are numbers first, then times, indicators of missing values, and hashed values', () => {
    const [row] = expected.found
    const [constant, age, income, year, ...rest] = dense(row)
    assert.deepEqual(
      [constant, age, income],
      [
        [0, 1],
        [1, 18],
        [2, 1658]
      ]
    )
    assert.ok(year[0] === 3 && year[1] > 2.41 && year[1] < 2.42)
    // Thursday, in February, at a quarter before the end of the day.
    const circle = rest.map(([index, value]) => [index, Math.round(100 * value) / 100])
    assert.deepEqual(circle, [
      [4, 0.5],
      [5, 0.87],
      [6, -0.43],
      [7, -0.9],
      [8, -1],
      [9, -0]
    ])
    // A category, three words and two pairs.
    assert.equal(row.length - dense(row).length, 1 + 3 + 2)
    // The position in time is scaled like the numbers.
    assert.deepEqual(expected.numeric, [3])
  })

  it('are days since 1970 if they are dates that count as numbers', () => {
    const dated: ParserOptions = {
      schema: [
        { name: 'at', kind: 'number', date: true, missing: true },
        { name: 'x', kind: 'number' }
      ]
    }
    const day = Date.UTC(2024, 1, 29) / 86_400_000
    const rows = [
      [day + 0.75, 1],
      [day, 2],
      [day + 0.5, 3]
    ].map(values => values.map((value, index) => [index, Math.fround(value)]))
    const csv = 'at,x,y\n2024-02-29 18:00,1,0\n2024-02-29,2,0\n1709208000,3,0\nNA,4,0\n'
    const json = ['"2024-02-29T18:00:00Z"', '"2024-02-29"', '1709208000', 'null'].map(
      (at, i) => `{"at": ${at}, "x": ${i + 1}, "y": 0}\n`
    )
    const expected = [
      ...rows,
      [
        [1, 4],
        [2, 1]
      ]
    ]
    const withoutConstant = { ...dated, constant: false }
    assert.deepEqual(parse('csv', csv, withoutConstant).found, expected)
    assert.deepEqual(parse('jsonl', json.join(''), withoutConstant).found, expected)
    assert.throws(
      () => parse('csv', 'at,x,y\nsoon,1,0\n', withoutConstant),
      /"soon" in the numeric column "at" is not a date/
    )
  })

  it('are found as keys of JSON objects', () => {
    const json = {
      region: 'east',
      y: 1,
      income: 1658,
      age: '18',
      when: '2024-02-29T18:00:00Z',
      review: 'So, VERY good!'
    }
    assert.deepEqual(parse('jsonl', `${JSON.stringify(json)}\n`), expected)
    const { y, ...features } = json
    assert.deepEqual(parse('jsonl', `${JSON.stringify({ y, features })}\n`), expected)
  })

  it('set an indicator or a category of its own if they are missing', () => {
    const csv = parse('csv', 'age,income,region,review,when,y\nNA,?,,,null,1\n')
    const indicators = [
      [0, 1],
      [10, 1],
      [11, 1]
    ]
    assert.deepEqual(dense(csv.found[0]), indicators)
    assert.equal(csv.found[0].length, 4)
    for (const json of ['{"y": 1}', '{"y": 1, "age": null, "region": "", "when": "NA"}']) {
      assert.deepEqual(parse('jsonl', `${json}\n`).found, csv.found)
    }
    assert.deepEqual(
      parse('csv', 'age,income,region,review,when,y\n-,5,,,null,1\n', { na: ['-', 'null'] }).found[0][1],
      [2, 5]
    )
  })

  it('may be given as an array of the numeric ones', () => {
    const [row] = parse('jsonl', '{"y": 1, "features": [18, 1658]}\n').found
    assert.deepEqual(dense(row).slice(0, 3), expected.found[0].slice(0, 3))
    assert.throws(() => parse('jsonl', '{"y": 1, "features": [18]}\n'), /an array of 1 features, expected 2/)
  })

  it('refuse values that do not fit, and report unknown columns once', () => {
    const notices: string[] = []
    const onNotice = (notice: string) => notices.push(notice)
    assert.throws(
      () => parse('jsonl', '{"y": 1, "age": "old"}\n'),
      /"old" in the numeric column "age" is not a number: write/
    )
    assert.throws(() => parse('jsonl', '{"y": 1, "when": "soon"}\n'), /"soon" in the time column "when" is not a date/)
    assert.throws(() => parse('csv', 'age,y\n1,0\n'), /no column "income", which the model needs/)
    const rows = '{"y": 1, "agee": 18, "income": 3}\n{"y": 1, "id": [1], "age": null}\n'
    assert.equal(parse('jsonl', rows, { onNotice }).found.length, 2)
    parse('csv', 'id,age,income,region,review,when,y\n1,2,3,a,b,2024-01-01,0\n', { onNotice })
    assert.deepEqual(notices, [
      '<input>: the model does not know the key agee, so it is ignored, like any other that it does not know',
      '<input>: the model does not know the column id, so it is ignored'
    ])
  })

  it('refuse a row in JSON of which the model knows no key, but not one without keys', () => {
    const reason = /1:18: none of the keys is a column of the model: give age, income, region, review, when/
    assert.throws(() => parse('jsonl', '{"y": 1, "agee": 18, "incomee": 3}\n'), reason)
    assert.throws(() => parse('jsonl', '{"features": {"agee": 18}, "y": 1}\n'), /none of the keys is a column/)
    assert.throws(() => parse('jsonl', '{"rows": [{"age": 18}], "y": 1}\n'), /none of the keys is a column/)
    assert.equal(parse('jsonl', '{"y": 1}\n{"features": {}, "y": 1}\n').found.length, 2)
    assert.equal(parse('jsonl', '{"other": 3, "features": {"age": 18}, "y": 1}\n').found.length, 1)
  })

  it('are scaled by the schema if it says so', () => {
    const scaled: readonly ColumnSchema[] = [{ name: 'age', kind: 'number', mean: 40, deviation: 10 }]
    assert.deepEqual(parse('csv', 'age,y\n18,1\n', { schema: scaled }).found[0][1], [1, Math.fround(-2.2)])
    assert.deepEqual(parse('jsonl', '{"features": [18], "y": 1}\n', { schema: scaled }).found[0][1], [
      1,
      Math.fround(-2.2)
    ])
  })

  it('are known to a parser after the first row', () => {
    const parser = createParser('csv', { label: 'y', constant: true })
    assert.equal(parser.schema, undefined)
    parser.push(Buffer.from('b,y,t,a\n1,0,x,2\n'))
    assert.deepEqual(parser.schema, [
      { name: 'a', kind: 'number' },
      { name: 'b', kind: 'number' },
      { name: 't', kind: 'category' }
    ])
  })
})

describe('a category', () => {
  const columns: readonly ColumnSchema[] = [{ name: 'c', kind: 'category' }]
  const hashes = (format: 'csv' | 'jsonl', values: readonly string[]) => {
    const csv = `c,y\n${values.map(value => `${value},1\n`).join('')}`
    const json = values.map(value => `{"c": ${value}, "y": 1}\n`).join('')
    return parse(format, format === 'csv' ? csv : json, { schema: columns, constant: false }).found.map(
      ([[index]]) => index
    )
  }

  it('is the same in any notation', () => {
    const same = [
      ['true', 'True', 'TRUE'],
      ['false', 'False'],
      ['1', '1.0', '1.00', '1e0'],
      ['-2', '-2.0'],
      ['0', '-0', '0.0', '-0.0'],
      ['1000', '1e3', '1E+3', '1000.0'],
      ['9007199254740993', '9007199254740993.0']
    ]
    const found = same.map(texts => new Set(hashes('csv', texts)))
    for (const [i, set] of found.entries()) assert.equal(set.size, 1, same[i].join())
    assert.equal(new Set(found.flatMap(set => [...set])).size, same.length)
    assert.deepEqual(
      hashes('jsonl', ['true', '"True"', '1', '1.0', '"1"', '2.50']),
      hashes('csv', ['true', 'true', '1', '1', '1', '2.50'])
    )
  })

  it('keeps zeros of codes, and other texts as they are', () => {
    const texts = [
      '7',
      '007',
      '07',
      '1.10',
      '1.1',
      '1.',
      'trues',
      'tru',
      '1.0.0',
      '1e',
      '-',
      '--1',
      '9007199254740993',
      '9007199254740992'
    ]
    assert.equal(new Set(hashes('csv', texts.slice(0, 10).concat(texts.slice(11)))).size, texts.length - 1)
  })

  it('may be a class', () => {
    const labels = (text: string, format: 'csv' | 'jsonl') =>
      parse(format, text, { schema: [{ name: 'x', kind: 'number' }], classNames: ['False', 'True'] }).labels
    assert.deepEqual(labels('x,y\n1,true\n2,FALSE\n', 'csv'), [1, 0])
    assert.deepEqual(labels('{"x": 1, "y": true}\n{"x": 1, "y": false}\n', 'jsonl'), [1, 0])
  })
})

describe('text without spaces', () => {
  const features = (text: string) => {
    const columns: readonly ColumnSchema[] = [{ name: 't', kind: 'text' }]
    const { found } = parse('csv', `t,y\n"${text}",1\n`, { schema: columns, constant: false })
    return found[0].map(([index]) => index)
  }

  it('has a feature for each group of two and three characters', () => {
    // Four characters: three pairs and two triples.
    assert.equal(features('很不满意').length, 5)
    const common = features('房间很满意').filter(index => features('服务很满意。').includes(index))
    // Of the last three characters: two pairs and a triple.
    assert.equal(common.length, 3)
    assert.equal(features('好').length, 1)
    assert.deepEqual(
      features('good 房间，bad'),
      [...features('good'), ...features('房间'), ...features('bad')].sort((a, b) => a - b)
    )
    assert.equal(features('ไม่ดี').length, 7)
    assert.equal(features('über naïve дом').length, 3)
  })

  it('is the kind of a column of longer values', () => {
    const kind = (values: readonly string[]) => inferColumns(['t'], [values], {})[0].kind
    const texts = Array.from(
      { length: 60 },
      (_, i) => `总体来说这部电影${'一二三四五六七八九十'[i % 10]}${'非常很'[i % 3]}好看${i}`
    )
    assert.equal(kind(texts), 'text')
    assert.equal(kind(Array.from({ length: 60 }, (_, i) => ['北京', '上海', '广州'][i % 3])), 'category')
  })
})

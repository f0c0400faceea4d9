/** CSV: header, quoting, kinds of columns, labels and malformed rows. */
import assert from 'node:assert/strict'
import { HeaderError } from '../../../src/data/errors.js'
import { createParser } from '../../../src/data/formats/parser.js'
import { parseText, textOf } from '../../support/streams.js'

describe('CSV', () => {
  it('numbers numeric columns in the order of the header, without the label', () => {
    const { rows, faults, dimension } = parseText('csv', 'a,label,b\n1.5,0,-2\n3,1,4e1\n')
    assert.deepEqual(faults, [])
    assert.equal(dimension, 2)
    assert.deepEqual(textOf(rows), ['0 0:1.5 1:-2', '1 0:3 1:40'])
  })

  it('hashes categories after the numeric columns, one feature for each value', () => {
    const { rows, dimension } = parseText('csv', 'colour,x,label\nred,1,0\nblue,2,1\n"red",3,0\n', { hashBits: 10 })
    assert.equal(dimension, 1 + 2 ** 10)
    const colours = rows.map(row => row.features[1][0])
    assert.deepEqual(
      rows.map(row => row.features[0]),
      [
        [0, 1],
        [0, 2],
        [0, 3]
      ]
    )
    assert.equal(colours[0], colours[2])
    assert.notEqual(colours[0], colours[1])
    for (const colour of colours) assert.ok(colour >= 1 && colour < 1 + 2 ** 10)
  })

  it('has no hashed features without categories, and 2^18 by default with them', () => {
    assert.equal(parseText('csv', 'a,label\n1,1\n').dimension, 1)
    assert.equal(parseText('csv', 'a,label\nx,1\n').dimension, 2 ** 18)
    assert.equal(parseText('csv', 'a,label\n1,1\n', { categorical: ['a'], constant: true }).dimension, 2 ** 18 + 1)
  })

  it('marks missing values, omits ignored columns, and puts the constant feature at 0', () => {
    const { rows } = parseText('csv', 'id,a,b,label\nn1,,2,1\nn2,3,,1\n', { ignore: ['id'], constant: true })
    assert.deepEqual(
      rows.map(row => row.features),
      [
        [
          [2, 2],
          [3, 1],
          [0, 1]
        ],
        [
          [1, 3],
          [0, 1]
        ]
      ]
    )
  })

  it('keeps commas, newlines and escaped quotes in quoted fields, and trims fields', () => {
    const names = ['a,b', 'line\nbreak', 'say "hi"', 'plain']
    const text = 'x,label\n1,"a,b"\n2,"line\nbreak"\n 3 , "say ""hi""" \r\n4,plain\r\n'
    const { rows, faults } = parseText('csv', text, { classNames: names })
    assert.deepEqual(faults, [])
    assert.deepEqual(
      rows.map(row => row.label),
      [0, 1, 2, 3]
    )
  })

  it('numbers text labels by the class names', () => {
    const text = 'x,class\n1,UP\n2,DOWN\n3,UP\n'
    assert.deepEqual(
      parseText('csv', text, { label: 'class' }).faults[0],
      '2:3: label "UP" is not a class number (0, 1, … or -1/+1)'
    )
    const { rows } = parseText('csv', text, { label: 'class', classNames: ['DOWN', 'UP'] })
    assert.deepEqual(
      rows.map(row => row.label),
      [1, 0, 1]
    )
  })

  it('reads inputs without a label if allowed', () => {
    assert.deepEqual(parseText('csv', 'x\n5\n', { unlabelled: true }).rows, [{ label: Number.NaN, features: [[0, 5]] }])
    assert.deepEqual(textOf(parseText('csv', 'x,label\n5,\n', { unlabelled: true }).rows), ['NaN 0:5'])
  })

  it('skips a byte order mark', () => {
    assert.deepEqual(parseText('csv', '\ufefflabel,x\n1,5\n', {}, 1).rows, [{ label: 1, features: [[0, 5]] }])
  })

  const malformed: [string, string][] = [
    ['1,2', '2:1: 2 fields, expected 3 as in the header'],
    ['1,2,3,4', '2:1: 4 fields, expected 3 as in the header'],
    [
      '1,x,1',
      '2:3: "x" in the numeric column "b" is not a number: write a number, or leave the field empty if the value is missing'
    ],
    ['1,1e999,1', '2:3: "1e999" in the numeric column "b" exceeds the range of float32: use a smaller unit'],
    ['1,2,NaN', '2:5: the label is missing'],
    ['1,2,', '2:5: the label is empty'],
    ['1,"2"x,1', '2:6: expected a comma after the closing quote']
  ]
  for (const [line, fault] of malformed) {
    it(`skips "${line}"`, () => {
      const parser = createParser('csv', { onMalformed: m => faults.push(`${m.line - 1}:${m.column}: ${m.reason}`) })
      const faults: string[] = []
      const batch = parser.push(Buffer.from(`a,b,label\n1,2,1\n${line}\n3,4,0\n`))
      assert.deepEqual(faults, [fault])
      assert.equal(batch.size, 2)
    })
  }

  it('reports the line of a record after quoted newlines, and an unclosed quote', () => {
    const options = { classNames: ['x\n\ny', 'x'] }
    const { faults } = parseText('csv', 'a,label\n1,"x\n\ny"\n2\n', options)
    assert.deepEqual(faults, ['5:1: 1 fields, expected 2 as in the header'])
    assert.deepEqual(parseText('csv', 'a,label\n2,"x\n3', options).faults, ['2:3: a quoted field is not closed'])
    assert.throws(
      () => parseText('csv', 'a,label\n1,"x\n\ny"\n2\n3,"x\n4,x\n5,x\n6,x', options),
      /^MalformedInputError: <input>:6:3: a quoted field is not closed, so the 3 lines behind it are no rows: close/
    )
  })

  it('reports once that a quoted field swallows rows, and a field with very many lines', () => {
    const noticesOf = (text: string) => {
      const notices: string[] = []
      parseText('csv', text, { onNotice: line => notices.push(line), classNames: ['x', 'y'] })
      return notices
    }
    const rows = '1,2,x\n'.repeat(10)
    assert.deepEqual(noticesOf(`a,b,label\n${rows}"1,2,x\n${rows}1",2,y\n${rows}"3,4,x\n${rows}3",4,y\n`), [
      '<input>:12: a quoted field has 11 line breaks, and its lines look like rows: check for a quote that is not closed'
    ])
    assert.match(
      noticesOf(`a,label\n"${'word\n'.repeat(300)}",x\n`)[0],
      /<input>:2: a quoted field has 300 line breaks: check/
    )
    assert.deepEqual(noticesOf(`a,label\n"${'word\n'.repeat(30)}",x\n`), [])
  })

  it('reports columns that are missing in the header', () => {
    const cases: [string, object, RegExp][] = [
      ['a,b\n', {}, /no label column "label"/],
      ['a,a,label\n', {}, /has a duplicate column/],
      ['a,label\n', { ignore: ['c'] }, /no column "c"/],
      ['a,label\n', { categorical: ['c'] }, /no column "c"/],
      ['a,b,label\n1,2,1\n', { dimension: 1 }, /the columns have 2 features/]
    ]
    for (const [text, options, message] of cases) {
      assert.throws(
        () => createParser('csv', options).push(Buffer.from(text)),
        (error: Error) => error instanceof HeaderError && message.test(error.message)
      )
    }
  })
})

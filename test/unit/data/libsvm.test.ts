/** LIBSVM text: labels, indices, and malformed rows. */
import assert from 'node:assert/strict'
import { MalformedInputError, StreamOptionsError } from '../../../src/data/errors.js'
import { createParser } from '../../../src/data/formats/parser.js'
import { parseText, textOf } from '../../support/streams.js'

describe('LIBSVM', () => {
  it('reads labels and features, indices from 1', () => {
    const { rows, faults } = parseText('libsvm', '-1 1:1 3:0.5\n+1 2:-2e1 \n1\n0 7:.25\t9:3.\r\n')
    assert.deepEqual(textOf(rows), ['0 0:1 2:0.5', '1 1:-20', '1', '0 6:0.25 8:3'])
    assert.deepEqual(faults, [])
  })

  it('skips blank lines and comments, and reads a last line without a newline', () => {
    const { rows, faults } = parseText('libsvm', '# a file\n\n  \n1 1:1 # 2:1\n-1 2:1')
    assert.deepEqual(textOf(rows), ['1 0:1', '0 1:1'])
    assert.deepEqual(faults, [])
  })

  it('puts the constant feature at 0', () => {
    const { rows, dimension } = parseText('libsvm', '1 1:2 3:4\n', { constant: true, dimension: 3 })
    assert.deepEqual(textOf(rows), ['1 0:1 1:2 3:4'])
    assert.equal(dimension, 4)
  })

  it('reduces indices modulo the number of hashed features', () => {
    const { rows, dimension } = parseText('libsvm', '1 1:1 8:2 9:3\n', { hashBits: 3 })
    assert.deepEqual(rows[0].features, [
      [0, 1],
      [7, 2],
      [0, 3]
    ])
    assert.equal(dimension, 8)
  })

  it('keeps class numbers and regression targets as they are', () => {
    assert.deepEqual(
      parseText('libsvm', '7 1:1\n0 1:1\n').rows.map(row => row.label),
      [7, 0]
    )
    const { rows } = parseText('libsvm', '-1.5 1:1\n-1 1:1\n', { target: 'number' })
    assert.deepEqual(
      rows.map(row => row.label),
      [-1.5, -1]
    )
  })

  it('reads rows without a label if allowed', () => {
    assert.deepEqual(textOf(parseText('libsvm', '1:2\n1 1:2\n', { unlabelled: true }).rows), ['NaN 0:2', '1 0:2'])
  })

  it('leaves features that a model does not know out of their rows', () => {
    const notices: string[] = []
    const options = { dimension: 3, ignoreUnknown: true, onNotice: (line: string) => notices.push(line) }
    const { rows, faults } = parseText('libsvm', '1 1:2 4:9 3:1\n0 99999999999:1.5\n1 2:1 5:x\n', options)
    assert.deepEqual(textOf(rows), ['1 0:2 2:1', '0'])
    assert.deepEqual(faults, ['3:7: index 5 is above the number of features, 3'])
    assert.equal(notices.length, 1)
    assert.match(notices[0], /the model has 3 features, so others such as 4 are left out/)
  })

  const malformed: [string, string][] = [
    ['1 1:1 x:2', '1:7: expected index:value with an index of digits'],
    ['1 1:1 2', '1:7: expected index:value with an index of digits'],
    ['1 qid:3 1:1', '1:3: expected index:value with an index of digits'],
    ['1 0:1', '1:3: index 0: LIBSVM indices start at 1: add 1 to all of them'],
    ['1 11:1', '1:3: index 11 is above the number of features, 10'],
    ['1 99999999999:1', '1:3: index 99999999999 is above the number of features, 10'],
    ['1 1:nan', '1:5: the value is not a finite float32 number'],
    ['1 1:-inf', '1:5: the value is not a finite float32 number'],
    ['1 1:1e39', '1:5: the value is not a finite float32 number'],
    ['1 1:', '1:5: the value is not a finite float32 number'],
    ['1 1:1x', '1:5: the value is not a finite float32 number'],
    ['nan 1:1', '1:1: the label is missing'],
    ['1e999 1:1', '1:1: the label is not a finite float32 number'],
    ['0.5 1:1', '1:1: label 0.5 is not a class number (0, 1, … or -1/+1)'],
    ['2 1:1', '1:1: label 2 is not below the number of classes, 2'],
    ['1:1 2:1', '1:1: the label is missing']
  ]
  for (const [line, fault] of malformed) {
    it(`skips "${line}"`, () => {
      const { rows, faults } = parseText('libsvm', `${line}\n1 2:1\n`, { dimension: 10, classes: 2 })
      assert.deepEqual(faults, [fault])
      assert.deepEqual(rows, [{ label: 1, features: [[1, 1]] }])
    })
  }

  it('counts skipped rows and reports the correct line', () => {
    const parser = createParser('libsvm')
    parser.push(Buffer.from('1 1:1\nx\n\n1 a:1\n'))
    assert.equal(parser.skipped, 2)
    assert.equal(parseText('libsvm', '1 1:1\n\n# c\n1 a:1\n').faults[0].split(':')[0], '4')
  })

  it('throws under strict, with file, line and column', () => {
    const parser = createParser('libsvm', { strict: true, source: 'a.libsvm' })
    assert.throws(
      () => parser.push(Buffer.from('1 1:1\n1 0:1\n')),
      (error: Error) =>
        error instanceof MalformedInputError &&
        error.message === 'a.libsvm:2:3: index 0: LIBSVM indices start at 1: add 1 to all of them'
    )
  })

  it('rejects options that contradict each other', () => {
    for (const options of [
      { classes: 1 },
      { dimension: 0 },
      { hashBits: 31 },
      { hashBits: 4, dimension: 3 },
      { target: 'number', classes: 3 },
      { classNames: ['a', 'a'] },
      { classNames: ['a', 'b'], classes: 3 },
      { ignore: ['a'] },
      { categorical: ['a'] }
    ] as const) {
      assert.throws(() => createParser('libsvm', options), StreamOptionsError)
    }
  })
})

/** JSON lines: the three shapes of a row, and malformed rows. */
import assert from 'node:assert/strict'
import { murmur3 } from '../../../src/data/formats/hash.js'
import { parseText, textOf } from '../../support/streams.js'

const mask = 2 ** 18 - 1
const named = (text: string, seed = 0) => murmur3(Buffer.from(text), 0, Buffer.byteLength(text), seed)

describe('JSON lines', () => {
  it('reads and hashes named features', () => {
    const line =
      '{"id": [1, {"x": null}], "label": 1, "features": {"a": 2.5, "day": "mon", "on": true, "off": false, "n": null}}\n'
    const { rows, faults, dimension } = parseText('jsonl', line)
    assert.deepEqual(faults, [])
    assert.equal(dimension, 2 ** 18)
    assert.deepEqual(rows, [
      {
        label: 1,
        features: [
          [named('a') & mask, 2.5],
          [named('mon', named('day')) & mask, 1],
          [named('on') & mask, 1]
        ]
      }
    ])
  })

  it('reads arrays by position', () => {
    const { rows, dimension } = parseText(
      'jsonl',
      '{"features":[1, null,-3e0],"label":"-1"}\n{"features": [ 4,5,6 ], "label": 1}\n',
      {
        constant: true
      }
    )
    assert.equal(dimension, 4)
    assert.deepEqual(textOf(rows), ['0 1:1 3:-3 0:1', '1 1:4 2:5 3:6 0:1'])
  })

  it('reads flat objects with the label under any key', () => {
    const { rows } = parseText('jsonl', '{"x": 1, "class": "UP", "id": 3}\r\n\n{"class":"DOWN","x":2}\n', {
      label: 'class',
      classNames: ['UP', 'DOWN'],
      ignore: ['id'],
      hashBits: 18
    })
    assert.deepEqual(rows, [
      { label: 0, features: [[named('x') & mask, 1]] },
      { label: 1, features: [[named('x') & mask, 2]] }
    ])
  })

  it('hashes escaped names in their decoded form', () => {
    const [plain, escaped] = parseText('jsonl', '{"é": 1, "label": 1}\n{"\\u00e9": 1, "label": 1}\n').rows
    assert.deepEqual(plain, escaped)
  })

  it('accepts booleans as labels, and missing labels if allowed', () => {
    const text = '{"label": true, "x": 1}\n{"label": false, "x": 1}\n{"label": null, "x": 1}\n{"x": 1}\n{}\n'
    const { rows } = parseText('jsonl', text, { unlabelled: true })
    assert.deepEqual(
      rows.map(row => row.label),
      [1, 0, Number.NaN, Number.NaN, Number.NaN]
    )
  })

  const malformed: [string, string][] = [
    ['[1]', '2:1: expected a JSON object on each line'],
    ['{"label": 1', '2:12: expected , or }'],
    ['{"label": 1,}', '2:13: expected a string in double quotes'],
    ['{"label": 1} x', '2:14: unexpected text after the object'],
    ['{"label": 1, "x" 2}', '2:18: expected : after a key'],
    ['{"label": 1, "x": NaN}', '2:19: expected a finite float32 number'],
    ['{"label": 1, "x": 1e999}', '2:19: expected a finite float32 number'],
    ['{"label": 1, "x": [1]}', '2:19: a feature must be a number, a string or a boolean: flatten nested values'],
    ['{"label": 1, "x": "a}', '2:22: a string is not closed'],
    ['{"label": 1, "x": "\\q"}', '2:19: a string has an invalid escape'],
    ['{"label": 1, "x": nul}', '2:19: expected a JSON value'],
    ['{"label": 0.5, "x": 1}', '2:11: label 0.5 is not a class number (0, 1, … or -1/+1)'],
    ['{"x": 1}', '2:1: the label is missing (key "label")'],
    ['{"label": 1, "features": [1]}', '2:1: the features are an array, expected named']
  ]
  for (const [line, fault] of malformed) {
    it(`skips ${line}`, () => {
      const { rows, faults } = parseText('jsonl', `{"label":1,"x":1}\n${line}\n{"label":0,"x":1}\n`)
      assert.deepEqual(faults, [fault])
      assert.deepEqual(
        rows.map(row => row.label),
        [1, 0]
      )
    })
  }

  it('requires arrays of one length', () => {
    const { faults } = parseText(
      'jsonl',
      '{"label":1,"features":[]}\n{"label":1,"features":[1,2]}\n{"label":1,"features":[1]}\n'
    )
    assert.deepEqual(faults, ['1:1: the array of features is empty', '3:1: an array of 1 features, expected 2'])
  })

  it('leaves numbered features that a model does not know out of their rows', () => {
    const line = '{"label":1,"features":{"1":5,"9":2}}\n{"label":1,"features":{"y":5}}\n'
    const { rows, faults } = parseText('jsonl', line, { dimension: 2, ignoreUnknown: true })
    assert.deepEqual(rows, [{ label: 1, features: [[1, 5]] }])
    assert.deepEqual(faults, ['2:28: "y" is not a feature number from 0 to 1'])
  })

  it('limits nesting', () => {
    const { faults } = parseText('jsonl', `{"label":1,"features":{},"x":${'['.repeat(100_000)}\n`)
    assert.match(faults[0], /nested deeper than 64/)
  })
})

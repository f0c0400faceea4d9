/** Columns are the same features in any order of a file's columns, and as keys of JSON objects. */
import assert from 'node:assert/strict'
import { createParser, type ParserOptions } from '../../../src/streams/index.js'

const options: ParserOptions = { label: 'y', columns: ['age', 'income'], constant: true }
const dense = (format: 'csv' | 'jsonl', text: string, more: ParserOptions = {}) => {
  const rows = createParser(format, { ...options, strict: true, ...more }).push(Buffer.from(text))
  const found = Array.from({ length: rows.size }, (_, row) => {
    const entries: [number, number][] = []
    for (let p = rows.offsets[row]; p < rows.offsets[row + 1]; p++) entries.push([rows.indices[p], rows.values[p]])
    return entries.sort((a, b) => a[0] - b[0])
  })
  return { found, labels: [...rows.labels.subarray(0, rows.size)] }
}

describe('columns', () => {
  const expected = dense('csv', 'age,income,region,y\n18,1658,east,1\n')

  it('are found in a file with another order', () => {
    assert.deepEqual(dense('csv', 'region,y,income,age\neast,1,1658,18\n'), expected)
    assert.deepEqual(expected.found[0].slice(0, 3), [
      [0, 1],
      [1, 18],
      [2, 1658]
    ])
  })

  it('are found as keys of JSON objects, with strings hashed as in the file', () => {
    assert.deepEqual(dense('jsonl', '{"region": "east", "y": 1, "income": 1658, "age": 18}\n'), expected)
    assert.deepEqual(dense('jsonl', '{"y": 1, "features": {"age": 18, "income": 1658, "region": "east"}}\n'), expected)
  })

  it('may be missing in JSON, but not be replaced by other values', () => {
    assert.deepEqual(dense('jsonl', '{"y": 1, "age": 18, "income": null}\n').found[0], [
      [0, 1],
      [1, 18]
    ])
    assert.throws(() => dense('jsonl', '{"y": 1, "agee": 18}\n'), /"agee" is not a numeric column of the model/)
    assert.throws(() => dense('jsonl', '{"y": 1, "age": "old"}\n'), /give a number/)
  })

  it('exclude strings if the model has no hashed features', () => {
    const none = { dimension: 2 }
    assert.deepEqual(dense('jsonl', '{"y": 0, "income": 5}\n', none).found[0], [
      [0, 1],
      [2, 5]
    ])
    assert.throws(() => dense('jsonl', '{"y": 0, "region": "east"}\n', none), /give a number/)
  })

  it('may be given as an array of the numeric ones', () => {
    assert.deepEqual(dense('jsonl', '{"y": 1, "features": [18, 1658]}\n').found[0], expected.found[0].slice(0, 3))
    assert.throws(() => dense('jsonl', '{"y": 1, "features": [18]}\n'), /an array of 1 features, expected 2/)
  })

  it('are known to a parser after the first row, and required in other files', () => {
    const parser = createParser('csv', { label: 'y', constant: true })
    assert.equal(parser.columns, undefined)
    parser.push(Buffer.from('a,y,t,b\n1,0,x,2\n'))
    assert.deepEqual(parser.columns, ['a', 'b'])
    assert.throws(() => dense('csv', 'age,y\n1,0\n'), /no column "income"/)
  })
})

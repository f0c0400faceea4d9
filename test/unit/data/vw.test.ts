/** VW text: label and tag, namespaces, scales and hashing. */
import assert from 'node:assert/strict'
import { murmur3 } from '../../../src/data/formats/hash.js'
import { parseText } from '../../support/streams.js'

const hash = (text: string, seed = 0) => murmur3(Buffer.from(text), 0, Buffer.byteLength(text), seed)
const low = (value: number) => value & (2 ** 18 - 1)

describe('VW text', () => {
  it('hashes names in their namespace and scales values', () => {
    const { rows, faults, dimension } = parseText('vw', '1 |ns:2 height:1.5 red |other red 7:3\n-1 | red 7\n')
    const [ns, other] = [hash('ns'), hash('other')]
    assert.deepEqual(faults, [])
    assert.equal(dimension, 2 ** 18)
    assert.deepEqual(rows, [
      {
        label: 1,
        features: [
          [low(hash('height', ns)), 3],
          [low(hash('red', ns)), 2],
          [low(hash('red', other)), 1],
          [low(other + 7), 3]
        ]
      },
      {
        label: 0,
        features: [
          [low(hash('red')), 1],
          [7, 1]
        ]
      }
    ])
  })

  it('reads tags and an importance of 1, and skips blank lines', () => {
    const text = "1 tag| a\n1 1.0 tag|n a\n1 'tag | a\n1 1 | a\n1 |\n1 |n\n\n"
    const { rows, faults } = parseText('vw', text)
    assert.deepEqual(faults, [])
    assert.deepEqual(
      rows.map(row => row.label),
      [1, 1, 1, 1, 1, 1]
    )
    assert.deepEqual(
      rows.map(row => row.features.length),
      [1, 1, 1, 1, 0, 0]
    )
  })

  it('reads rows without a label if allowed', () => {
    const { rows } = parseText('vw', "| 3\n'tag | 3\n", { unlabelled: true, constant: true, hashBits: 4 })
    const expected = {
      label: Number.NaN,
      features: [
        [0, 1],
        [4, 1]
      ]
    }
    assert.deepEqual(rows, [expected, expected])
  })

  const malformed: [string, string][] = [
    ['1 a b', '1:1: expected | before the features'],
    ['1 -2 | a', '1:3: the importance is not a number of at least 0'],
    ['1 two | a', '1:3: the importance is not a number of at least 0'],
    ['1 1 0.5 | a', '1:5: initial predictions are not supported: remove it'],
    ['| a', '1:1: the label is missing'],
    ['1| a', '1:1: the label is missing'],
    ['x | a', '1:1: label "x" is not a class number (0, 1, … or -1/+1)'],
    ['1 | a:nan', '1:7: the value is not a finite float32 number'],
    ['1 | a:1:2', '1:7: the value is not a finite float32 number'],
    ['1 | :2', '1:5: a feature has no name'],
    ['1 |n:1e30 a:1e30', '1:11: the scaled value is not a finite float32 number']
  ]
  for (const [line, fault] of malformed) {
    it(`skips "${line}"`, () => {
      const { rows, faults } = parseText('vw', `${line}\n1 | 2\n`)
      assert.deepEqual(faults, [fault])
      assert.deepEqual(rows, [{ label: 1, features: [[2, 1]] }])
    })
  }

  it('hashes like MurmurHash3', () => {
    const vectors: [string, number, number][] = [
      ['', 0, 0],
      ['', 1, 0x514e28b7],
      ['abc', 0, 0xb3dd93fa],
      ['aaaa', 0x9747b28c, 0x5a97808a],
      ['Hello, world!', 0x9747b28c, 0x24884cba]
    ]
    for (const [text, seed, expected] of vectors) assert.equal(hash(text, seed), expected)
  })
})

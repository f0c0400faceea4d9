/** Interactions of rows without columns equal products that the input gives explicitly, in every format that has them. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { createParser } from '../../../src/data/formats/parser.js'
import type { ParserOptions, TextFormat } from '../../../src/data/index.js'
import { crossHash } from '../../../src/data/schema/schema.js'
import { type PlainRow, parseText } from '../../support/streams.js'

const HASH_BITS = 14
const MASK = 2 ** HASH_BITS - 1
type Entry = readonly [index: number, value: number]

/** Eighths, whose products are exact. */
const value = fc.integer({ min: -8, max: 7 }).map(number => (number + 0.5) / 4)
const entries = fc.uniqueArray(fc.tuple(fc.nat(5000), value), { selector: ([index]) => index, maxLength: 7 })

/** The product of two features, whose number does not depend on their order. */
function product([a, x]: Entry, [b, y]: Entry): Entry {
  return [(a < b ? crossHash(a, b) : crossHash(b, a)) & MASK, x * y]
}
const within = (part: readonly Entry[]) => part.flatMap((one, i) => part.slice(i + 1).map(other => product(one, other)))
const between = (a: readonly Entry[], b: readonly Entry[]) => a.flatMap(one => b.map(other => product(one, other)))

/** As features of one namespace without a name. */
const explicit = (label: number, all: readonly Entry[]) =>
  `${label} |${all.map(([index, value]) => ` ${index}:${value}`).join('')}\n`

function parsed(format: TextFormat, text: string, options: ParserOptions, chunk?: number): PlainRow[] {
  const { rows, faults } = parseText(format, text, { hashBits: HASH_BITS, ...options }, chunk)
  assert.deepEqual(faults, [])
  return rows
}

/** Feature 0 is the constant one. */
const constant = true

describe('interactions of rows without columns', () => {
  it('are the products of all pairs, in LIBSVM, VW text and sparse JSON lines', () => {
    fc.assert(
      fc.property(fc.array(entries, { minLength: 1, maxLength: 5 }), fc.integer({ min: 1, max: 50 }), (rows, chunk) => {
        const expected = parsed('vw', rows.map(row => explicit(1, [...row, ...within(row)])).join(''), { constant })
        const libsvm = rows.map(row => `1${row.map(([index, value]) => ` ${index + 1}:${value}`).join('')}\n`)
        const options = { constant, interactions: 'all' as const }
        assert.deepEqual(parsed('libsvm', libsvm.join(''), options, chunk), expected)
        const vw = rows.map(row => explicit(1, row)).join('')
        assert.deepEqual(parsed('vw', vw, options, chunk), expected)
        assert.deepEqual(parsed('vw', vw.repeat(300), options), Array.from({ length: 300 }, () => expected).flat())
      })
    )
  })

  it('are the products of namespaces of VW text, by their names', () => {
    const bare = (part: readonly Entry[]) => part.map(([index, value]) => ` ${index}:${value}`).join('')
    const numbers = (name: string, part: readonly Entry[]): readonly Entry[] =>
      parsed('vw', `1 |${name}${bare(part)}\n`, {})[0].features
    fc.assert(
      fc.property(entries, entries, entries, entries, (one, two, three, four) => {
        const text = `1 |first${bare(one)} |second${bare(two)} |${bare(three)} |first${bare(four)}\n`
        const [a, b, c, d] = [numbers('first', one), numbers('second', two), numbers('', three), numbers('first', four)]
        const own = [...a, ...b, ...c, ...d]
        const features = (interactions: readonly (readonly [string, string])[]) =>
          parsed('vw', text, { interactions })[0].features
        assert.deepEqual(features([['second', 'first']]), [...own, ...between(a, b), ...between(b, d)])
        assert.deepEqual(features([['first', 'first']]), [...own, ...within(a), ...between(a, d), ...within(d)])
        assert.deepEqual(features([['first', 'third']]), own)
        const twice = features([
          ['second', 'second'],
          ['first', 'second']
        ])
        assert.deepEqual(twice, [...own, ...within(b), ...between(a, b), ...between(b, d)])
      })
    )
  })

  it('have the names of sparse JSON lines, which are hashed by default', () => {
    const options = { interactions: 'all' as const }
    const [{ features }] = parseText('jsonl', '{"label":1,"x":2,"y":-3,"z":0.5}\n', options).rows
    const [x, y, z, ...products] = features
    const crossed = ([a, u]: Entry, [b, v]: Entry): Entry => [
      (a < b ? crossHash(a, b) : crossHash(b, a)) & (2 ** 18 - 1),
      u * v
    ]
    assert.deepEqual(products, [crossed(x, y), crossed(x, z), crossed(y, z)])
  })

  it('of rows with too many are not made: the rows are reported and left out', () => {
    const long = `1${Array.from({ length: 600 }, (_, i) => ` ${i + 1}:1`).join('')}\n`
    const text = `1 3:1 4:1\n${long}-1 3:1\n1 x\n`
    const indices: number[] = []
    const faults: string[] = []
    const { rows } = parseText('libsvm', text, {
      interactions: 'all',
      hashBits: 10,
      onMalformed: ({ reason, index }) => {
        faults.push(reason)
        indices.push(index)
      }
    })
    assert.deepEqual(
      rows.map(({ label, features }) => [label, features.length]),
      [
        [1, 3],
        [0, 1]
      ]
    )
    assert.match(faults.join(), /^the row has more than 131072 interactions.*,expected index:value/)
    // Numbers of the rows before them.
    assert.deepEqual(indices, [1, 2])
    const names = Array.from({ length: 400 }, (_, i) => ` ${i}`).join('')
    const pairs = parseText('vw', `1 |a${names} |b${names}\n1 |a 1 |b 2\n`, { interactions: [['a', 'b']] })
    assert.equal(pairs.rows.length, 1)
    assert.match(pairs.faults.join(), /^1:1: the row has more than 131072 interactions/)
  })

  it('are refused where features have no namespaces, or are not hashed', () => {
    const refuses = (format: TextFormat, options: ParserOptions, message: RegExp) =>
      assert.throws(() => createParser(format, options), message)
    refuses('libsvm', { interactions: [['a', 'b']] }, /features of libsvm have no namespaces: give interactions as all/)
    refuses('libsvm', { interactions: 'all', dimension: 5 }, /give hashBits, not dimension/)
    const arrays = createParser('jsonl', { interactions: 'all' })
    assert.throws(() => arrays.push(Buffer.from('{"label":1,"features":[1,2]}\n')), /are hashed: give hashBits/)
  })
})

/** The loops over VW and LIBSVM text in WebAssembly give the rows and the faults of those in TypeScript, which parse short texts. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { createParser } from '../../../src/data/formats/parser.js'
import { vwKernel } from '../../../src/data/formats/vw-kernel.js'
import type { ParserOptions } from '../../../src/data/index.js'
import { RowBuffer } from '../../../src/data/rows.js'
import { plainRows } from '../../support/streams.js'

/** Bytes of a chunk of which the loop in TypeScript parses every row. */
const SHORT = 1000

/** Rows with their weights, and faults. */
function parsed(format: 'vw' | 'libsvm', text: string, options: ParserOptions, chunk: number) {
  const faults: string[] = []
  const onMalformed: ParserOptions['onMalformed'] = ({ line, column, reason, index }) =>
    faults.push(`${line}:${column} after ${index}: ${reason}`)
  const parser = createParser(format, { onMalformed, ...options })
  const bytes = Buffer.from(text)
  const rows: unknown[] = []
  const add = (batch: ReturnType<typeof parser.push>) =>
    rows.push(
      ...plainRows(batch).map((row, i) => ({
        ...row,
        weight: batch.weights?.[i] ?? 1,
        id: batch.ids?.[i],
        isNumeric: batch.numeric[i] === row.features.length
      }))
    )
  for (let from = 0; from < bytes.length; from += chunk) add(parser.push(bytes.subarray(from, from + chunk)))
  add(parser.end())
  return { rows, faults, newClasses: parser.newClasses, line: parser.line }
}

/** Both have the same rows and faults, of texts with plain rows and others. */
function assertEqual(
  format: 'vw' | 'libsvm',
  options: fc.Arbitrary<ParserOptions>,
  row: fc.Arbitrary<string>,
  plain: fc.Arbitrary<string>
): void {
  const [others, plains] = [fc.array(row, { maxLength: 20 }), fc.array(plain, { minLength: 30, maxLength: 60 })]
  fc.assert(
    fc.property(options, others, plains, (given, odd, good) => {
      const rows = good.flatMap((line, i) => (i % 3 === 0 && odd.length > 0 ? [odd[i % odd.length], line] : [line]))
      const text = [...rows, ...odd, ...rows, ...rows].join('\n')
      assert.deepEqual(parsed(format, text, given, 1 << 17), parsed(format, text, given, SHORT))
    }),
    { numRuns: 500 }
  )
}

describe('VW text in WebAssembly', () => {
  const digits = fc.oneof(fc.nat(200).map(String), fc.stringMatching(/^[0-9]{1,20}$/))
  const word = fc.oneof(fc.stringMatching(/^[a-z_é0-9]{1,20}$/), fc.stringMatching(/^[0-9]{7,18}[a-z]?[0-9]{0,3}$/))
  const number = fc.oneof(
    fc.constantFrom('1', '0', '-0', '+2.5', '.5', '3.', '1e3', '-', '.', 'x', '', '1e39', '1:1'),
    fc.float({ noNaN: true }).map(String),
    fc.stringMatching(/^[0-9]{0,17}\.[0-9]{0,17}$/)
  )
  const feature = fc
    .tuple(fc.oneof(digits, word), fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, number))
    .map(([name, value]) => (value === undefined ? name : `${name}:${value}`))
  const separator = fc.oneof({ weight: 20, arbitrary: fc.constant(' ') }, fc.constantFrom('  ', '\t', '\r', ''))
  const features = fc.array(
    fc.tuple(feature, separator).map(parts => parts.join('')),
    { maxLength: 6 }
  )
  const namespace = fc.tuple(
    fc.oneof({ weight: 4, arbitrary: fc.constant('') }, word, digits, fc.constantFrom('n:2', ':', 'n:x')),
    features
  )
  const head = fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom('1 ', '-1 ', '+1 ', '0 ') },
    fc.constantFrom(
      '',
      '2 ',
      '1',
      '-0 ',
      '1  ',
      '1.5 ',
      'red ',
      'blue 2 ',
      "0 0.5 'tag",
      '1 tag',
      '1 1 1 ',
      '\t1 ',
      'x'
    )
  )
  const row = fc.oneof(
    {
      weight: 12,
      arbitrary: fc
        .tuple(head, fc.array(namespace, { minLength: 1, maxLength: 3 }))
        .map(([start, parts]) => start + parts.map(([name, all]) => `|${name} ${all.join('')}`).join(''))
    },
    fc.constantFrom('', ' ', '1 2', '\r')
  )
  const plain = fc.nat(2000).map(i => `${i % 2 ? '1' : '-1'} |a ${i}:1 ${i + 1}:0.25 word_${i} |b x`)
  const options = fc.constantFrom<ParserOptions>(
    {},
    { constant: true, hashBits: 8 },
    { classes: 3 },
    { classNames: ['red', 'blue'], newClasses: true },
    { target: 'number', unlabelled: true },
    { unlabelled: true, ids: true }
  )

  it('has the rows and faults of the loop in TypeScript', () => {
    assertEqual('vw', options, row, plain)
  })

  it('divides long texts into parts of whole rows, and leaves rows that are longer to its caller', () => {
    const long = `1 | ${Array.from({ length: 30_000 }, (_, i) => `w${i}`).join(' ')}`
    const rows = Array.from({ length: 9000 }, (_, i) => (i === 4000 ? long : `${i % 2} | ${i} w${i}:${i / 8}`))
    const text = rows.join('\n')
    assert.deepEqual(parsed('vw', text, {}, 1 << 20), parsed('vw', text, {}, SHORT))
  })

  it('takes plain rows', () => {
    const kernel = vwKernel(255, 1)
    const text = Buffer.from('1 |n a b:2 3:-0.125\n-1 | 123456789012\n+1 |\n0 || x\n1 | 3:1e3\n1 | 3\n')
    const end = kernel.take(text, 0, text.length)
    assert.equal(end, text.length)
    assert.equal(kernel.parse(0), text.indexOf('1 | 3:1e3'))
    assert.equal(kernel.rows, 4)
    const out = new RowBuffer()
    out.reserve(10, 100)
    kernel.moveTo(out)
    assert.deepEqual(
      plainRows(out.view()).map(({ label, features }) => [label, features.map(([, value]) => value)]),
      [
        [1, [1, 1, 2, -0.125]],
        [0, [1, 1]],
        [1, [1]],
        [0, [1, 1]]
      ]
    )
    assert.equal(kernel.rows, 0)
  })
})

describe('LIBSVM text in WebAssembly', () => {
  const index = fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 1, max: 500 }).map(String) },
    fc.stringMatching(/^[0-9]{1,11}$/),
    fc.constantFrom('', '0', 'x', '-1', '#', '3x', '1:1')
  )
  const value = fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom('1', '9', '11', '0.5', '-2.25') },
    fc.constantFrom('0', '-0', '+2.5', '.5', '3.', '1e3', '-', '.', 'x', '', '1e39', '1:1', 'nan'),
    fc.float({ noNaN: true }).map(String),
    fc.stringMatching(/^[0-9]{0,17}\.[0-9]{0,17}$/)
  )
  const feature = fc.tuple(index, value).map(parts => parts.join(':'))
  const separator = fc.oneof({ weight: 20, arbitrary: fc.constant(' ') }, fc.constantFrom('  ', '\t', ' \r', ' # 1:1 '))
  const head = fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom('1 ', '-1 ', '+1 ', '0 ') },
    fc.constantFrom('', '2 ', '1', '-0 ', '1  ', '1.5 ', 'red ', 'blue ', ' 1 ', '# 1', '\t1 ', 'x', '1:1 ')
  )
  const row = fc.oneof(
    {
      weight: 12,
      arbitrary: fc
        .tuple(head, fc.array(fc.tuple(feature, separator), { maxLength: 12 }))
        .map(([start, features]) => start + features.flat().join(''))
    },
    fc.constantFrom('', ' ', '1', '\r')
  )
  const plain = fc
    .nat(2000)
    .map(i => `${i % 2 ? '+1' : '-1'} ${i + 1}:1 ${i + 2}:0.25 ${i + 3}:11 ${'7:1 '.repeat(i % 40)}`)
  const options = fc.constantFrom<ParserOptions>(
    {},
    { constant: true, hashBits: 8 },
    { classes: 3, dimension: 400 },
    { dimension: 400, ignoreUnknown: true },
    { classNames: ['red', 'blue'], newClasses: true },
    { target: 'number', unlabelled: true }
  )

  it('has the rows and faults of the loop in TypeScript', () => {
    assertEqual('libsvm', options, row, plain)
  })

  it('divides long texts into parts of whole rows, and leaves rows that are longer to the loop in TypeScript', () => {
    const long = `1 ${Array.from({ length: 30_000 }, (_, i) => `${i + 1}:${i % 3}`).join(' ')}`
    const rows = Array.from({ length: 9000 }, (_, i) => (i === 4000 ? long : `${i % 2} ${i + 1}:1 ${i + 2}:${i / 8}`))
    const text = rows.join('\n')
    assert.deepEqual(parsed('libsvm', text, {}, 1 << 20), parsed('libsvm', text, {}, SHORT))
  })
})

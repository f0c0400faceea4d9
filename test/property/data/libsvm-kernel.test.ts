/** The loop over LIBSVM text in WebAssembly gives the rows and the faults of the loop in TypeScript, which parses short texts. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { createParser } from '../../../src/data/formats/parser.js'
import type { ParserOptions } from '../../../src/data/index.js'
import { plainRows } from '../../support/streams.js'

/** Bytes of a chunk of which the loop in TypeScript parses every row. */
const SHORT = 1000

/** Rows and faults. */
function parsed(text: string, options: ParserOptions, chunk: number) {
  const faults: string[] = []
  const onMalformed: ParserOptions['onMalformed'] = ({ line, column, reason, index }) =>
    faults.push(`${line}:${column} after ${index}: ${reason}`)
  const parser = createParser('libsvm', { onMalformed, ...options })
  const bytes = Buffer.from(text)
  const rows: unknown[] = []
  const add = (batch: ReturnType<typeof parser.push>) =>
    rows.push(...plainRows(batch).map((row, i) => ({ ...row, numeric: batch.numeric[i] })))
  for (let from = 0; from < bytes.length; from += chunk) add(parser.push(bytes.subarray(from, from + chunk)))
  add(parser.end())
  return { rows, faults, newClasses: parser.newClasses, line: parser.line }
}

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

describe('LIBSVM text in WebAssembly', () => {
  it('has the rows and faults of the loop in TypeScript', () => {
    fc.assert(
      fc.property(
        options,
        fc.array(row, { maxLength: 20 }),
        fc.array(plain, { minLength: 30, maxLength: 60 }),
        (given, odd, good) => {
          const rows = good.flatMap((line, i) => (i % 3 === 0 && odd.length > 0 ? [odd[i % odd.length], line] : [line]))
          const text = [...rows, ...odd, ...rows, ...rows].join('\n')
          assert.deepEqual(parsed(text, given, 1 << 17), parsed(text, given, SHORT))
        }
      ),
      { numRuns: 500 }
    )
  })

  it('divides long texts into parts of whole rows, and leaves rows that are longer to the loop in TypeScript', () => {
    const long = `1 ${Array.from({ length: 30_000 }, (_, i) => `${i + 1}:${i % 3}`).join(' ')}`
    const rows = Array.from({ length: 9000 }, (_, i) => (i === 4000 ? long : `${i % 2} ${i + 1}:1 ${i + 2}:${i / 8}`))
    const text = rows.join('\n')
    assert.deepEqual(parsed(text, {}, 1 << 20), parsed(text, {}, SHORT))
  })
})

/** Properties of the parsers: exact numbers, independence of chunks, quoting, and JSON compared with `JSON.parse`. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { MalformedInputError } from '../../../src/data/errors.js'
import { DecimalScanner } from '../../../src/data/formats/decimals.js'
import { murmur3 } from '../../../src/data/formats/hash.js'
import { createParser } from '../../../src/data/formats/parser.js'
import type { ParserOptions, TextFormat } from '../../../src/data/index.js'
import type { Malformed } from '../../../src/data/types.js'
import { parseText, plainRows } from '../../support/streams.js'

const digits = fc.stringMatching(/^[0-9]{0,25}$/)
const decimal = fc
  .tuple(
    fc.constantFrom('', '-', '+'),
    digits,
    fc.constantFrom('', '.'),
    digits,
    fc.constantFrom('', 'e', 'E-', 'e+'),
    fc.nat(400)
  )
  .map(([sign, whole, point, fraction, e, power]) => sign + whole + point + fraction + (e === '' ? '' : e + power))

/** Tokens of each format, from which valid and malformed lines are built. */
const samples: { format: TextFormat; tokens: string[]; head: string; options?: ParserOptions }[] = [
  {
    format: 'libsvm',
    head: '',
    tokens: ['1', '-1', '+1', ' ', '\t', '1:1', '12:0.5', '3:-1e-3', ':', '#', 'x', '\r\n', '\n', '0:1', '7:']
  },
  {
    format: 'vw',
    head: '',
    tokens: ['1', '-1', ' ', '|', ' |', '|ns', '|n:2', ' a', ' 12', ' b:0.5', ':', "'tag", '\r\n', '\n', 'é']
  },
  {
    format: 'csv',
    head: 'a,"b ""x""",label\n1,red,1\n',
    tokens: ['1', '2.5', 'red', ',', ',', '"', '""', '"a,b"', '"a\nb"', ' ', '\r\n', '\n', '1,blue,0\n', '2,"x""y",1\n']
  },
  {
    format: 'jsonl',
    head: '',
    tokens: [
      '{"label":1,"x":2}\n',
      '{',
      '}',
      '"label":1',
      '"a":',
      '"t\\n"',
      ',',
      ' ',
      'true',
      '[1,2]',
      '\n',
      '\r\n',
      '"',
      '3'
    ]
  }
]

/** The rows and faults, or the error of a quoted field that many lines follow. */
function parsed(format: TextFormat, text: string, options: ParserOptions | undefined, chunk?: number) {
  try {
    return parseText(format, text, options, chunk)
  } catch (error) {
    if (!(error instanceof MalformedInputError)) throw error
    return error.message
  }
}

describe('parsing', () => {
  it('parses numbers like parseFloat', () => {
    const scanner = new DecimalScanner()
    const texts = fc.oneof(decimal, fc.double().map(String), fc.float().map(String), fc.integer().map(String))
    fc.assert(
      fc.property(texts, text => {
        const value = scanner.scan(Buffer.from(`${text} `), 0)
        const expected = /^[+-]?(\d|\.\d)/.test(text) ? Number.parseFloat(text) : Number.NaN
        assert.ok(Object.is(value, expected), `${text}: ${value} is not ${expected}`)
        if (!Number.isNaN(expected)) assert.equal(scanner.end, text.length)
      }),
      { numRuns: 20_000 }
    )
  })

  for (const { format, tokens, head, options } of samples) {
    it(`parses the same rows and faults of ${format} for any division into chunks`, () => {
      fc.assert(
        fc.property(fc.array(fc.constantFrom(...tokens), { maxLength: 40 }), parts => {
          const text = head + parts.join('')
          const whole = parsed(format, text, options)
          for (let chunk = 1; chunk <= Math.min(20, text.length); chunk++) {
            assert.deepEqual(parsed(format, text, options, chunk), whole)
          }
        }),
        { numRuns: 300 }
      )
    })

    it(`can divide ${format} at every byte`, () => {
      const text = `\ufeff${head}${tokens.join('')}\n${head}`
      const whole = parseText(format, text, options)
      const length = Buffer.byteLength(text)
      for (let chunk = 1; chunk < length; chunk++) assert.deepEqual(parseText(format, text, options, chunk), whole)
    })
  }

  it('reads rows of CSV in one pass as it reads them field by field', () => {
    const schema = [
      { name: 'n', kind: 'number', missing: true },
      { name: 'c', kind: 'category' },
      { name: 'w', kind: 'number', role: 'weight' },
      { name: 'at', kind: 'ignored' },
      { name: 'id', kind: 'category', role: 'id' },
      { name: 't', kind: 'text' },
      { name: 'd', kind: 'time', missing: true },
      { name: 'm', kind: 'number', mean: 2, deviation: 3 }
    ] as const
    const names = ['n', 'c', 'label', 'w', 'other', 'at', 'id', 't', 'd', 'm']
    const good = ['1.5', 'red', 'yes', '2', '', '2024-02-29 10:00:00', 'a1', 'one two', '2024-02-29', '-3e2']
    const odd = [
      '',
      ' 1',
      '2 ',
      '"3"',
      '"a,b"',
      'x"y',
      'NA',
      'yes',
      'no',
      '9x',
      '+1',
      '.5',
      '\t4',
      '5\t',
      '\r',
      '2024',
      'é',
      '1e99',
      ' '
    ]
    const column = fc.nat({ max: names.length - 1 })
    const row = fc.record({
      changes: fc.array(fc.tuple(column, fc.constantFrom(...odd)), { maxLength: 2 }),
      more: fc.constantFrom('', '', '', ',', ',7'),
      end: fc.constantFrom('\n', '\n', '\r\n', '\r\r\n', '\n\n', ' \n')
    })
    fc.assert(
      fc.property(
        fc.array(row, { minLength: 1, maxLength: 30 }),
        fc.constantFrom(',', ';', '\t', '|'),
        fc.boolean(),
        fc.boolean(),
        (rows, delimiter, header, unlabelled) => {
          const lines = rows.map(({ changes, more, end }) => {
            const fields = [...good]
            for (const [at, text] of changes) fields[at] = text
            return `${fields.join(delimiter)}${more.replace(',', delimiter)}${end}`
          })
          const text = `${header ? `${names.join(delimiter)}\n` : ''}${lines.join('')}`
          const classNames = ['no', 'yes']
          const dialect = { header, columns: header ? undefined : names, delimiter }
          const options: ParserOptions = { schema, ...dialect, classNames, unlabelled, ids: true, constant: true }
          const read = (more: ParserOptions) => {
            const faults: string[] = []
            const onMalformed = ({ line, column, reason }: Malformed) => faults.push(`${line}:${column}: ${reason}`)
            const parser = createParser('csv', { ...options, onMalformed, ...more })
            // Two files, each with its header.
            const read = [1, 2].map(() => {
              const found = parser.push(Buffer.from(text))
              const { weights, ids } = found
              const rows = plainRows(found).map((row, i) => ({
                ...row,
                weight: weights?.[i] ?? 1,
                id: ids?.[i]
              }))
              parser.restart()
              return rows
            })
            return { read, faults }
          }
          assert.deepEqual(read({}), read({ onHashed: () => undefined }))
        }
      ),
      { numRuns: 500 }
    )
  })

  it('round-trips any quoted CSV field', () => {
    const field = fc.string({ unit: fc.constantFrom('"', ',', '\n', '\r', ' ', 'a', 'é', '1') })
    fc.assert(
      fc.property(fc.uniqueArray(field, { minLength: 2, maxLength: 8 }), fields => {
        // An empty label is malformed.
        const names = fields.map(text => `x${text}`)
        const quoted = names.map(name => `1,"${name.replaceAll('"', '""')}"\n`).join('')
        const { rows, faults } = parseText('csv', `a,label\n${quoted}`, { classNames: names })
        assert.deepEqual(faults, [])
        assert.deepEqual(
          rows.map(row => row.label),
          names.map((_, index) => index)
        )
      })
    )
  })

  it('reads any flat JSON object like JSON.parse', () => {
    const value = fc.oneof(
      fc.float({ noNaN: true, noDefaultInfinity: true }),
      fc.string({ unit: 'grapheme' }),
      fc.boolean()
    )
    const entries = fc.dictionary(fc.string({ unit: 'grapheme' }), value, { maxKeys: 8 })
    fc.assert(
      fc.property(entries, features => {
        const { rows, faults } = parseText('jsonl', `${JSON.stringify({ label: 1, features })}\n`)
        const hash = (text: string, seed: number) => murmur3(Buffer.from(text), 0, Buffer.byteLength(text), seed)
        // JSON.stringify does not preserve −0.
        const written = Object.entries(JSON.parse(JSON.stringify(features)) as typeof features)
        const expected = written.flatMap(([name, feature]): [number, number][] => {
          if (typeof feature === 'number') return [[hash(name, 0), Math.fround(feature)]]
          if (typeof feature === 'string') return [[hash(feature, hash(name, 0)), 1]]
          return feature ? [[hash(name, 0), 1]] : []
        })
        const sorted = (pairs: [number, number][]) =>
          pairs.map(([hashed, number]) => `${hashed & (2 ** 18 - 1)}:${number}`).sort()
        assert.deepEqual(faults, [])
        assert.deepEqual(sorted(rows[0].features), sorted(expected))
      })
    )
  })

  it('never yields a non-finite number or an index out of range, for any bytes', () => {
    const formats = fc.constantFrom<TextFormat>('libsvm', 'vw', 'jsonl')
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc.string({ unit: fc.constantFrom(...'01 :|{}[]",.-e\n') })
    )
    fc.assert(
      fc.property(formats, bytes, (format, content) => {
        const { rows } = parseText(format, content, { hashBits: 4, constant: true })
        for (const { label, features } of rows) {
          assert.ok(Number.isFinite(label))
          for (const [index, value] of features) assert.ok(index >= 0 && index <= 16 && Number.isFinite(value))
        }
      }),
      { numRuns: 3000 }
    )
  })
})

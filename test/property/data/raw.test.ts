/** Blocks of rows as text: they are the rows of the input, and can be read again from their places. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import fc from 'fast-check'
import { collect, openRaw, openStream, type RawBlock, type RawInput, type RawPlace } from '../../../src/data/index.js'

const FORMATS = ['libsvm', 'jsonl', 'csv'] as const

/** Rows of different lengths; those of CSV have line breaks in quotes, and other rows blank lines between them. */
function rowsOf(format: (typeof FORMATS)[number], lengths: readonly number[]): string[] {
  return lengths.map((length, i) => {
    const text = 'x'.repeat(length)
    if (format === 'libsvm') return `${i % 2} ${i + 1}:0.${'1'.repeat(length + 1)}\n`
    if (format === 'jsonl') return `{"label": ${i}, "text": "${text}"}\n`
    return i % 3 === 0 ? `${i};"${text}\n;""${text}"\n` : `${i};${text}\n`
  })
}

async function blocksFrom(input: RawInput, place?: RawPlace): Promise<RawBlock[]> {
  const blocks: RawBlock[] = []
  for await (const block of input.blocks(place)) blocks.push(block)
  return blocks
}

const textsOf = (blocks: readonly RawBlock[]) =>
  blocks.flatMap(({ lines }) => lines.map(line => Buffer.from(line).toString('utf8')))

describe('rows as text', () => {
  let dir = ''
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'admb-test-'))
  })
  after(() => rm(dir, { recursive: true }))

  it('are those of the files, and those after a place can be read again, also after its check', async () => {
    const lengths = fc.array(fc.nat(60), { minLength: 1, maxLength: 900 })
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...FORMATS),
        fc.array(lengths, { minLength: 1, maxLength: 2 }),
        fc.nat(10_000),
        async (format, files, at) => {
          const folder = await mkdtemp(join(dir, 'rows-'))
          const header = format === 'csv' ? 'number;"a ""text"""\n' : ''
          const rows = files.map(one => rowsOf(format, one))
          for (const [i, one] of rows.entries())
            await writeFile(join(folder, `${i}.${format}`), header + one.join(format === 'csv' ? '' : '\n'))
          const options = { data: folder, format, delimiter: ';' } as const
          const input = await openRaw(options)
          const blocks = await blocksFrom(input)
          const expected = rows.flat()
          assert.deepEqual(textsOf(blocks), expected)
          assert.equal(Buffer.from(input.header ?? []).toString('utf8'), header)
          assert.ok(blocks.every(({ lines }) => lines.length <= 256))
          // Another run checks the end, then reads from two places.
          const later = await openRaw(options)
          const last = blocks[blocks.length - 1]
          assert.ok(await later.isSame(last.place as RawPlace))
          const skip = at % blocks.length
          const block = blocks[skip]
          const row = at % block.lines.length
          const place = { ...(block.place as RawPlace), skip: (block.place as RawPlace).skip + row }
          const before = blocks.slice(0, skip).reduce((sum, { lines }) => sum + lines.length, 0) + row
          // As in a file.
          const stored = JSON.parse(JSON.stringify(place)) as RawPlace
          assert.deepEqual(textsOf(await blocksFrom(later, stored)), expected.slice(before))
          assert.deepEqual(textsOf(await blocksFrom(later, last.place)), textsOf([last]))
          assert.equal(Buffer.from(later.header ?? []).toString('utf8'), header)
        }
      ),
      { numRuns: 60 }
    )
  })

  it('of standard input have no places', async () => {
    const stdin = Readable.from([Buffer.from('a;b\n1;'), Buffer.from('2\n3;4')])
    const input = await openRaw({ data: '-', format: 'csv', stdin })
    const blocks = await blocksFrom(input)
    assert.deepEqual([textsOf(blocks), input.delimiter, input.isReplayable], [['1;2\n', '3;4\n'], ';', false])
    assert.ok(blocks.every(({ place }) => place === undefined))
  })

  it('are not the comments of LIBSVM', async () => {
    const name = join(dir, 'comments.svm')
    await writeFile(name, '# one\n1 1:1 # two\n\n \t# three\n0 2:1')
    assert.deepEqual(textsOf(await blocksFrom(await openRaw({ data: name }))), ['1 1:1 # two\n', '0 2:1\n'])
  })

  it('without a header get one, with the given names or the numbers of the columns', async () => {
    const header = async (columns?: string[]) => {
      const stdin = Readable.from([Buffer.from('1,x\n2,y\n')])
      const input = await openRaw({ data: '-', format: 'csv', header: false, stdin, ...(columns && { columns }) })
      assert.equal(textsOf(await blocksFrom(input)).length, 2)
      return Buffer.from(input.header ?? []).toString('utf8')
    }
    assert.deepEqual([await header(), await header(['a', 'b"c'])], ['"1","2"\n', '"a","b""c"\n'])
  })

  it('of two files with different headers are refused', async () => {
    const folder = await mkdtemp(join(dir, 'headers-'))
    await writeFile(join(folder, '1.csv'), 'a,b\n1,2\n')
    await writeFile(join(folder, '2.csv'), 'a,c\n1,2\n')
    await assert.rejects(async () => blocksFrom(await openRaw({ data: folder, format: 'csv' })), /header .* differs/)
  })

  it('are LIBSVM lines with the same values for an input that is not text', async () => {
    const input = await openRaw({ data: 'digits:test' })
    const blocks = await blocksFrom(input)
    const file = join(dir, 'digits.svm')
    await writeFile(file, textsOf(blocks).join(''))
    const own = await collect(await openStream({ data: 'digits:test' }), 1000)
    const read = await collect(await openStream({ data: file, dimension: 784 }), 1000)
    assert.deepEqual([read.size, read.labels, read.values], [own.size, own.labels, own.values])
    const [, second] = blocks
    assert.deepEqual(textsOf((await blocksFrom(input, second.place)).slice(0, 1)), textsOf([second]))
  })
})

/** Positions: a stream that is stopped anywhere and resumed from its stored position yields each row once. */
import assert from 'node:assert/strict'
import { appendFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { openStream, type StreamOptions, type StreamPosition } from '../../../src/data/index.js'
import { share } from '../../support/runs.js'
import { type PlainRow, plainRows, plainStream, withFiles } from '../../support/streams.js'

type Kind = 'libsvm' | 'csv' | 'jsonl' | 'vw'

/** A file of that format. Some lines are blank or malformed. */
function text(kind: Kind, from: number, to: number, hasHeader = true): string {
  const line = (i: number) => {
    if (i % 11 === 7) return kind === 'csv' ? 'x,y,z,w\n' : 'nonsense\n'
    if (i % 13 === 5) return '\n'
    switch (kind) {
      case 'libsvm':
        return `${i % 2} ${1 + (i % 9)}:${i}\n`
      case 'vw':
        return `${i % 2} | ${i % 9}:${i}\n`
      case 'csv':
        return `${i},"a\n${i % 4}",${i % 2}\n`
      case 'jsonl':
        return `{"label": ${i % 2}, "features": [${i}, ${i % 3}]}\n`
      default:
        return kind satisfies never
    }
  }
  const header = kind === 'csv' && hasHeader ? 'x,colour,label\n' : ''
  return header + Array.from({ length: to - from }, (_, i) => line(from + i)).join('')
}

/** Reads up to `count` rows. @returns them, and the position as it is stored */
async function take(options: StreamOptions, count: number): Promise<{ rows: PlainRow[]; resume?: StreamPosition }> {
  const rows: PlainRow[] = []
  let resume = options.resume as StreamPosition | undefined
  for await (const batch of await openStream(options)) {
    const taken = Math.min(batch.size, count - rows.length)
    if (taken > 0) {
      rows.push(...plainRows({ ...batch, size: taken }))
      const position = batch.positionAfter?.(taken)
      assert.ok(position)
      resume = JSON.parse(JSON.stringify(position)) as StreamPosition
    }
    if (rows.length === count) break
  }
  return { rows, resume }
}

async function takeInRuns(options: StreamOptions, counts: readonly number[]): Promise<PlainRow[]> {
  const all: PlainRow[] = []
  let resume: StreamPosition | undefined
  for (const count of [...counts, Number.POSITIVE_INFINITY]) {
    const part = await take({ ...options, resume }, count)
    all.push(...part.rows)
    resume = part.resume
  }
  return all
}

const sized = (kind: Kind) => (kind === 'libsvm' ? { dimension: 32 } : {})
const kinds = fc.constantFrom<Kind>('libsvm', 'csv', 'jsonl', 'vw')
const stops = fc.array(fc.integer({ min: 1, max: 150 }), { maxLength: 5 })
const stages = fc.record(
  {
    shard: fc.constantFrom({ index: 0, count: 2 }, { index: 2, count: 3 }),
    shuffleWindow: fc.integer({ min: 1, max: 60 }),
    passes: fc.integer({ min: 1, max: 3 }),
    maxRows: fc.integer({ min: 1, max: 300 })
  },
  { requiredKeys: [] }
)

describe('positions', () => {
  it('resume a stream of any format and stages without a gap or a repetition', () =>
    withFiles((_write, directory) =>
      fc.assert(
        fc.asyncProperty(kinds, fc.nat(400), fc.boolean(), stages, stops, async (kind, count, isGzip, more, counts) => {
          const data = join(directory, `rows.${kind}`)
          const content = text(kind, 0, count)
          await writeFile(data, isGzip ? gzipSync(content) : content)
          const options = { data, format: kind, constant: true, ...more }
          const whole = await plainStream(await openStream(options))
          assert.deepEqual(await takeInRuns(options, counts), whole)
        }),
        { numRuns: share(300) }
      )
    )).timeout(120_000)

  it('resume at the rows that were appended, also after an incomplete row', () =>
    withFiles((_write, directory) =>
      fc.assert(
        fc.asyncProperty(
          kinds,
          fc.integer({ min: 1, max: 300 }),
          fc.integer({ min: 1, max: 40 }),
          fc.nat(20),
          async (kind, count, appended, cut) => {
            const data = join(directory, `rows.${kind}`)
            const [before, after] = [text(kind, 0, count), text(kind, count, count + appended, false)]
            await writeFile(data, before.slice(0, Math.max(30, before.length - cut)))
            const options = { data, format: kind, ...sized(kind) }
            const first = await take(options, Number.POSITIVE_INFINITY)
            await appendFile(data, before.slice(Math.max(30, before.length - cut)) + after)
            const whole = await plainStream(await openStream(options))
            const rest = await take({ ...options, resume: first.resume }, Number.POSITIVE_INFINITY)
            // An incomplete last row may have been a row, of which the rest is then lost.
            assert.equal(first.rows.length + rest.rows.length, whole.length)
            assert.deepEqual(rest.rows, whole.slice(first.rows.length))
          }
        ),
        { numRuns: share(200) }
      )
    )).timeout(120_000)

  it('resume in a directory, whose files are read in the order of their names', () =>
    withFiles((_write, root) =>
      fc.assert(
        fc.asyncProperty(
          kinds,
          fc.array(fc.nat(120), { minLength: 1, maxLength: 5 }),
          stops,
          async (kind, sizes, counts) => {
            const directory = join(root, `${Math.random()}`)
            await mkdir(directory)
            let from = 0
            for (const [index, size] of sizes.entries()) {
              const content = text(kind, from, from + size)
              await writeFile(join(directory, `${index}.${kind}`), index % 2 === 1 ? gzipSync(content) : content)
              from += size
            }
            const options = { data: directory, format: kind, ...sized(kind) }
            const whole = await plainStream(await openStream(options))
            assert.deepEqual(await takeInRuns(options, counts), whole)
            const pattern = { ...options, data: join(root, '*', `?.{${kind},gz}`) }
            assert.ok((await plainStream(await openStream(pattern))).length >= whole.length)
          }
        ),
        { numRuns: share(80) }
      )
    )).timeout(120_000)

  it('resume by the number of rows, or at the beginning of a file that has fewer', () =>
    withFiles(async write => {
      const data = await write('rows.libsvm', text('libsvm', 0, 300))
      const whole = await plainStream(await openStream({ data }))
      for (const resume of [1, 100, whole.length]) {
        assert.deepEqual(await plainStream(await openStream({ data, resume })), whole.slice(resume))
      }
      const notices: string[] = []
      const onNotice = (line: string) => notices.push(line)
      assert.deepEqual(await plainStream(await openStream({ data, resume: 9999, onNotice })), whole)
      assert.match(notices.join('\n'), /^\S+ has \d+ rows, but 9999 were read before: it was replaced, and is read/)
    }))
})

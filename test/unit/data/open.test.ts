/** `openStream`: the stages, compressed and standard input, and errors of inputs. */
import assert from 'node:assert/strict'
import { readdirSync, readlinkSync } from 'node:fs'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { guessFormat } from '../../../src/data/formats/formats.js'
import { openStream } from '../../../src/data/open.js'
import { MAX_LINE_BYTES } from '../../../src/data/options.js'
import { collect } from '../../../src/data/rows.js'
import { RunningMoments } from '../../../src/data/scale.js'
import type { StreamOptions } from '../../../src/data/stream-options.js'
import { plainRows, plainStream, withFiles } from '../../support/streams.js'

const lines = (count: number) => Array.from({ length: count }, (_, i) => `${i % 2} ${i + 1}:${i}\n`).join('')
const numbers = async (options: StreamOptions) =>
  (await plainStream(await openStream(options))).map(row => row.features[0][1])
const range = (count: number) => Array.from({ length: count }, (_, i) => i)

/** The file of a descriptor; undefined if it has been closed since it was listed. */
function pathOf(descriptor: string): string | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`)
  } catch {
    return undefined
  }
}

describe('openStream', () => {
  it('reads plain and gzip files independently of their names', async () => {
    await withFiles(async write => {
      // Large enough for rows that cross the boundaries of blocks and chunks.
      const text = lines(100_000)
      const plain = await write('a.libsvm', text)
      const gzip = await write('b.libsvm', gzipSync(text))
      const members = Buffer.concat([gzipSync(text.slice(0, 5000)), gzipSync(text.slice(5000))])
      const concatenated = await write('c.libsvm.gz', members)
      const expected = range(100_000)
      for (const data of [plain, gzip, concatenated]) assert.deepEqual(await numbers({ data }), expected)
    })
  })

  it('reads standard input, plain or gzip, once', async () => {
    const text = lines(1000)
    for (const content of [Buffer.from(text), gzipSync(text)]) {
      const stdin = Readable.from(Array.from(content, byte => Uint8Array.of(byte)))
      assert.deepEqual(await numbers({ data: '-', format: 'libsvm', stdin }), range(1000))
    }
    await assert.rejects(openStream({ data: '-', format: 'libsvm', passes: 2 }), {
      name: 'StreamOptionsError',
      message: '<stdin> can be read only once: leave passes at 1'
    })
  })

  it('knows the dimension of CSV from standard input before the rows', async () => {
    const stdin = Readable.from([Buffer.from('a,label\n1'), Buffer.from(',0\n2,1\n')])
    const stream = await openStream({ data: '-', format: 'csv', stdin })
    assert.equal(stream.dimension, 1)
    assert.deepEqual(await plainStream(stream), [
      { label: 0, features: [[0, 1]] },
      { label: 1, features: [[0, 2]] }
    ])
  })

  it('stops waiting for standard input when it is aborted', async () => {
    const abort = new AbortController()
    const stream = await openStream({
      data: '-',
      format: 'vw',
      stdin: new Readable({ read() {} }),
      signal: abort.signal
    })
    const reading = plainStream(stream)
    setTimeout(() => abort.abort(new Error('enough')), 5)
    await assert.rejects(reading, /enough/)
  })

  it('repeats passes, counts malformed lines in each, and reports them with their file when it parses them', async () => {
    await withFiles(async write => {
      const data = await write('a.csv', `a,label\n1,0\nx\n${'2,1\n'.repeat(20)}`)
      const faults: string[] = []
      const stream = await openStream({
        data,
        passes: 2,
        onMalformed: m => faults.push(`${m.source}:${m.line}:${m.column}`)
      })
      assert.equal((await plainStream(stream)).length, 2 * 21)
      assert.equal(stream.skipped, 2)
      assert.deepEqual(faults, [`${data}:3:1`])
      await assert.rejects(plainStream(await openStream({ data, strict: true })), {
        name: 'MalformedInputError',
        message: `${data}:3:1: 1 fields, expected 2 as in the header`
      })
    })
  })

  it('counts only the rows within the limit in the moments', async () => {
    await withFiles(async write => {
      const data = await write('a.csv', 'x,label\n2,0\n4,1\n9,0\n')
      const moments = new RunningMoments()
      await plainStream(await openStream({ data, scale: 'standard', maxRows: 2, scaling: { moments, frozen: false } }))
      assert.deepEqual(moments.of(0), { mean: 3, deviation: 1 })
    })
  })

  it('closes a file whose first rows it has read', async () => {
    await withFiles(async write => {
      const data = await write('a.csv', `x,label\n${'2,0\n4,1\n'.repeat(800_000)}`)
      const openFiles = () => readdirSync('/proc/self/fd').filter(fd => pathOf(fd) === data).length
      await openStream({ data, inferLabel: true })
      if (process.platform === 'linux') assert.equal(openFiles(), 0)
    })
  })

  it('can be iterated only once', async () => {
    const stream = await openStream({ data: 'synthetic', maxRows: 3 })
    await plainStream(stream)
    assert.throws(() => stream[Symbol.asyncIterator](), /can be iterated only once/)
  })

  it('reports each error in one line', async () => {
    await withFiles(async (write, directory) => {
      const gzip = gzipSync(lines(10_000))
      const damaged = Uint8Array.from(gzip)
      damaged.fill(0xff, 100, 200)
      const header = await write('a.csv', 'a,b\n1,2\n')
      const plain = await write('a.libsvm', lines(3))
      const cases: [StreamOptions, string, RegExp][] = [
        [{ data: `${directory}/none.csv` }, 'MissingInputError', /none\.csv: no such file: check the path$/],
        [{ data: `${directory}/*.c?x` }, 'MissingInputError', /no file matches: check the pattern$/],
        [{ data: `${directory}/a.*` }, 'UnknownFormatError', /name does not determine the format: give format/],
        [
          { data: `${directory}/*.{csv,libsvm}` },
          'UnknownFormatError',
          /have different formats: give format, or other/
        ],
        [
          { data: await write('a.dat', '') },
          'UnknownFormatError',
          /give format as one of libsvm, vw, csv, parquet, jsonl, idx$/
        ],
        [
          { data: await write('a.feather', 'ARROW1') },
          'UnknownFormatError',
          /a\.feather is Arrow, which is not read: convert it to Parquet or CSV/
        ],
        [
          { data: await write('zip.csv', Uint8Array.of(0x50, 0x4b, 3, 4, 10, 10)) },
          'UnknownFormatError',
          /zip\.csv is a zip archive, which is not read: unpack it: unzip/
        ],
        [
          { data: await write('latin.csv', Buffer.from('a,label\ncaf\u00e9,0\n', 'latin1')) },
          'EncodingError',
          /latin\.csv:2: the text is not UTF-8, and windows-1252 fits: give --encoding windows-1252/
        ],
        [{ data: '-' }, 'UnknownFormatError', /the format of standard input is unknown/],
        [
          { data: await write('b.libsvm', gzip.subarray(0, 5000)) },
          'CorruptInputError',
          /ends early: download the file again$/
        ],
        [{ data: await write('c.libsvm', damaged) }, 'CorruptInputError', /is damaged: download the file again$/],
        [
          { data: await write('d.vw', Buffer.alloc(MAX_LINE_BYTES + 1, 'x')) },
          'LineTooLongError',
          /longer than 16777216 bytes/
        ],
        [{ data: header }, 'HeaderError', /no label column "label"/],
        [
          { data: plain, decimal: ',' },
          'StreamOptionsError',
          /decimal has no meaning for libsvm, only for csv, .*jsonl: remove it$/
        ],
        [{ data: plain, noise: 1 }, 'StreamOptionsError', /^noise has no meaning for libsvm/],
        [
          { data: plain, shard: { index: 3, count: 3 } },
          'StreamOptionsError',
          /^shard index is 3: give an integer from 0 to 2$/
        ],
        [{ data: plain, passes: 0 }, 'StreamOptionsError', /^passes is 0/],
        [{ data: plain, shuffleWindow: 0 }, 'StreamOptionsError', /^shuffleWindow is 0/],
        [{ data: 'synthetic', noise: 0.5 }, 'StreamOptionsError', /below 0\.5$/],
        [{ data: 'synthetic', passes: 2 }, 'StreamOptionsError', /can be read only once/],
        [{ data: 'digits', hashBits: 4 }, 'StreamOptionsError', /^hashBits has no meaning for digits/]
      ]
      for (const [options, name, message] of cases) {
        const reading = async () => plainStream(await openStream(options))
        await assert.rejects(reading, (error: Error) => {
          assert.equal(error.name, name)
          assert.match(error.message, message)
          assert.ok(!error.message.includes('\n'))
          return true
        })
      }
    })
  })
})

describe('guessFormat', () => {
  it('uses the ending before .gz or .zst', () => {
    const names = [
      'a.parquet',
      'a.csv.zst',
      'a.libsvm',
      'a.svm.gz',
      'x/a.vw',
      'a.CSV',
      'a.jsonl',
      'a.ndjson.gz',
      'train-images-idx3-ubyte.gz'
    ]
    const formats = ['parquet', 'csv', 'libsvm', 'libsvm', 'vw', 'csv', 'jsonl', 'jsonl', 'idx']
    assert.deepEqual(names.map(guessFormat), formats)
    for (const name of ['csv', 'a.constructor', 'a.csv/b']) assert.throws(() => guessFormat(name), /give format/)
  })
})

describe('collect', () => {
  it('copies the first rows and closes the stream', async () => {
    const rows = plainRows(await collect(await openStream({ data: 'synthetic', dimension: 2 }), 300))
    const again = await plainStream(await openStream({ data: 'synthetic', dimension: 2, maxRows: 300 }))
    assert.equal(rows.length, 300)
    assert.deepEqual(rows, again)
    assert.equal((await collect(await openStream({ data: 'synthetic', maxRows: 5 }), 10)).size, 5)
  })

  it('reports the share that has been read, if the end is known', async () => {
    const shares = async (options: StreamOptions) => {
      const stream = await openStream(options)
      const reported: (number | undefined)[] = []
      for await (const _ of stream) reported.push(stream.share)
      return [...reported, stream.share]
    }
    await withFiles(async write => {
      const data = await write('a.libsvm', lines(400_000))
      const gzip = await write('b.libsvm', gzipSync(lines(1000)))
      for (const options of [
        { data, passes: 3 },
        { data: gzip, passes: 2 },
        { data: 'digits' },
        { data, maxRows: 700 }
      ]) {
        const reported = (await shares(options)).filter(share => share !== undefined)
        for (const [i, share] of reported.entries())
          assert.ok(share >= (reported[i - 1] ?? 0) && share <= 1, `${reported}`)
        assert.equal(reported.at(-1), 1)
      }
      const many = await shares({ data, passes: 3 })
      assert.ok(many.filter(share => share !== undefined && share > 0.1 && share < 0.9).length > 3)
      assert.deepEqual(await shares({ data: 'synthetic', maxRows: 300 }).then(reported => reported.at(-1)), 1)
    })
    const endless = await openStream({ data: 'synthetic' })
    for await (const _ of endless) break
    assert.equal(endless.share, undefined)
  })
})

/** Compressed files and Parquet give the rows of the text that they contain, and one line if they are damaged. */
import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { openStream } from '../../../src/data/open.js'
import type { StreamOptions } from '../../../src/data/stream-options.js'
import { parquetOf, zstdTable, zstdTableAsCsv } from '../../support/parquet.js'
import { type PlainRow, plainStream, withFiles } from '../../support/streams.js'

/** `0 1:0`, `1 2:1`, … of 300 rows, compressed by zstd 1.5 -19. */
const zstdLines = Buffer.from(
  'KLUv/WTeCYUnAOqtrBMLoKkD7X8rl1e/PEM+AS8BMAFlFSEvZNQgJ2SVIB9kVCAXZBUgD2TUkAOyyuRDRpXcZBXJS0aVcZJVZLyMUWOcjFVifI' +
    'xRYVyMVWA8jFEzDsYqj88Y1XGPVRzvGFXEOVYR8SJGDXEiVgnxIUYFcSFWAfEgRo04EKssPmJUxS1WUbxiVAmnWEXCSxg1wklYJcJHGBXCRVgF' +
    'wkMYNeEgrHL4hFENd1jF8IZRBZxhFQEvYNQAJ2CVAB9gVAAXYBUAD2DUgAOwyuADRhXcYBXBC0aVOcEqMi8zaszJrBLzMaPCXMwqMA8zauZgVn' +
    'k+M6pzzyrOO6OKz1lF/OJRwydeJfzhUcEXXgX84FHjA6+yPx5V315Fvx5VenoV6UtHjZ50lehHR4VedBXoQ0dND7rK/XRUe3cV+3ZUObuKvIwa' +
    'J6vEx6hwsQo8jJqDVf6M6r2K7xii6Cs6qoSeoqtI6EvoqBF6ErpKhH6EjgqhF6GrQOhD6KgJPQhd5dBP6KiG3qGrGPqGjiqgZ+gqAvoCOmqAno' +
    'CuEqAfoKMC6AXoKgD6ADpqQA9AVxn0AzqqoDfoKoK+oKPK9ARdRaYv01FjejJdJaYf01FhejFdBaYP01EzPZiu8vQzHdXpPV3F6TsdVdxzuoq4' +
    'L+6o4Z64q4T74Y4K7oW7CrgP7qhxD9xVdj/uqLq3u4ru644q7emuIu1LO2q0J+0q0X60o0J70a4C7UM7atqDdpXbTzuq7d2uYvu2owp7tqsI+8' +
    'KOGuwJu0qwH+yowF6wqwD7wI4a9oBdZfbDjip7s6vIvuyoUk52FSkvZdQoJ2WVKB9lVCgXZRUoD2XUlIOyyuVTRrXcZRXLW0YVcgbveFSxz/Eq' +
    'Yr/Yo4Z9Yq8S9oc9KtgX9ipgP9ijxj6wV9n+2KNq3/Yq2q89qtSnvYrUL/WoUZ/Uq0T9UY8K9UW9CtQP9aipD+pVrj/1qNZ3vYr1W48q9FmvIv' +
    'QLPWrQJ/QqQX/QowJ9Qa8C9AM9augDepXpDz2q9E2vIv3So0rpSa8ipS+lo0bpSekqUfpROiqUXpSuAqUPpaOm9KB0lUs/paNaepeuYulbOqqQ' +
    'nqWrCOkL6ahBekK6SpB+kI4KpBekqwDpA+moIT0gXWXSD+mokt6kq0j6ko4qoyfpKjL6MjpqjJ6MrhKjH6OjwujF6Cow+jA6akYPRld59DM6qq' +
    'P36CqOvqOjiug5uoqIvoiOGqInoquE6IfoqCB6IboKiD6IjhrRA9FVFv2IjqroLboGKsUnZxUpfikeNYpPileJ4o/iUaH4ongVKH4oHjXFB8Wr' +
    'XPwpHtXiu3gVi9/iUYX4LF5FiF+IRw3iE+JVgviDeFQgviBeBYgfiEcN8QHxKhN/iEeV+CZeReKXeFQZPolXkeGX4VFj+GR4lRj+GB4Vhi+GV4' +
    'Hhh+FRM3wwvMrDn+FRHb6HV3H4HR5VhM/hVUT4RXjUED4RXiWEP4RHBeEL4VVA+EF41AgfCK+y8Ed4VIVv4VUUfoVHleBTeBUJfgkeNYJPgleJ' +
    '4I/gUSH4IngVCH4IHjXBB8GrHPwJHtXgO3gVg9/gUQX4DF5FgF+ARw3gE+BVAvgDeFQAvgBeBYAfgEcN8AHwKgN/gEcV+AZeReAXeFQZn8CryP' +
    'hlPGqMT8arxPhjPCqML8arwPhhPGrGB+NVHn/Gozq+x6s4DgBXaZ3R',
  'base64'
)
const lines = Array.from({ length: 300 }, (_, i) => `${i % 2} ${i + 1}:${i}\n`).join('')

const rowsOf = async (options: StreamOptions): Promise<PlainRow[]> => plainStream(await openStream(options))

describe('Zstandard', () => {
  it('is read independently of the name, from files and standard input', async () => {
    await withFiles(async write => {
      const expected = await rowsOf({ data: await write('a.libsvm', lines) })
      assert.equal(expected.length, 300)
      assert.deepEqual(await rowsOf({ data: await write('b.libsvm.zst', zstdLines) }), expected)
      assert.deepEqual(await rowsOf({ data: await write('c.libsvm', zstdLines) }), expected)
      const stdin = Readable.from(Array.from(zstdLines, byte => Uint8Array.of(byte)))
      assert.deepEqual(await rowsOf({ data: '-', format: 'libsvm', stdin }), expected)
      const twice = await write('d.libsvm', Buffer.concat([zstdLines, zstdLines]))
      assert.deepEqual(await rowsOf({ data: twice }), [...expected, ...expected])
    })
  })

  it('continues at a position', async () => {
    await withFiles(async write => {
      const data = await write('a.libsvm.zst', zstdLines)
      const all = await rowsOf({ data })
      for await (const batch of await openStream({ data })) {
        const resume = batch.positionAfter?.(3)
        assert.deepEqual(await rowsOf({ data, resume }), all.slice(3))
        break
      }
    })
  })

  it('is refused in one line if it is cut, damaged, or to be followed', async () => {
    await withFiles(async write => {
      const damaged = Buffer.from(zstdLines)
      damaged.fill(0xff, 20, 60)
      const cases: [StreamOptions, RegExp][] = [
        [
          { data: await write('a.libsvm', zstdLines.subarray(0, 100)) },
          /a\.libsvm: the Zstandard data ends early: down/
        ],
        [{ data: await write('b.libsvm', damaged) }, /b\.libsvm: the Zstandard data is damaged: download/],
        [{ data: await write('c.libsvm', zstdLines), follow: true }, /c\.libsvm is compressed and cannot grow/],
        [{ data: await write('d.libsvm', zstdLines), from: 5 }, /d\.libsvm is compressed and has no offsets/]
      ]
      for (const [options, message] of cases) await assert.rejects(rowsOf(options), { message })
    })
  })
})

describe('Parquet', () => {
  const columns = [
    { name: 'age', data: [31, null, 47, 52], type: 'INT32' as const },
    { name: 'city', data: ['Bern', 'Oslo, "N"\n', null, ' Bern'], type: 'STRING' as const },
    { name: 'bought', data: ['no', 'yes', 'no', 'yes'], type: 'STRING' as const }
  ]
  const csv = 'age,city,bought\n31,Bern,no\n,"Oslo, ""N""\n",yes\n47,,no\n52," Bern",yes\n'

  it('has the rows and the schema of the same table in CSV, whatever the compression', async () => {
    await withFiles(async write => {
      const pairs = [
        ...(['SNAPPY', 'GZIP', 'BROTLI', 'UNCOMPRESSED'] as const).map(
          codec => [parquetOf(columns, codec), csv] as const
        ),
        [zstdTable, zstdTableAsCsv] as const
      ]
      for (const [bytes, text] of pairs) {
        const options = { label: 'bought', inferLabel: true }
        const parquet = await openStream({ ...options, data: await write('a.parquet', bytes) })
        const plain = await openStream({ ...options, data: await write('a.csv', text) })
        assert.deepEqual(parquet.schema, plain.schema)
        assert.equal(parquet.summary, plain.summary)
        assert.deepEqual(await plainStream(parquet), await plainStream(plain))
      }
    })
  })

  it('reads dates, large integers, booleans and columns of nulls', async () => {
    await withFiles(async write => {
      const data = await write(
        'a.parquet',
        parquetOf([
          { name: 'at', data: [new Date('2024-02-29T18:30:00Z'), null, new Date(0)], type: 'TIMESTAMP' },
          { name: 'n', data: [2n ** 40n, 3n, null], type: 'INT64' },
          { name: 'is', data: [true, false, null], type: 'BOOLEAN' },
          { name: 'nothing', data: [null, null, null], type: 'DOUBLE' },
          { name: 'label', data: [1, 0, 1], type: 'DOUBLE' }
        ])
      )
      const stream = await openStream({ data })
      assert.deepEqual(
        stream.schema?.map(({ name, kind }) => `${name}:${kind}`),
        (
          await openStream({
            data: await write(
              'a.csv',
              'at,n,is,nothing,label\n2024-02-29 18:30,9,true,,1\n,3,false,,0\n1970-01-01,,,,1\n'
            )
          })
        ).schema?.map(({ name, kind }) => `${name}:${kind}`)
      )
      const rows = await plainStream(stream)
      assert.equal(rows.length, 3)
      assert.ok(rows[0].features.some(([, value]) => value === 2 ** 40))
    })
  })

  it('names the row of a malformed value, and what it ignores', async () => {
    await withFiles(async write => {
      const table = [
        { name: 'x', data: [...Array(40).fill('1'), 'many\nwords', 'a'], type: 'STRING' as const },
        { name: 'list', data: Array(42).fill([1, 2]), type: 'VARIANT' as const },
        { name: 'label', data: Array.from({ length: 42 }, (_, i) => i % 2), type: 'INT32' as const }
      ]
      const data = await write('a.parquet', parquetOf(table))
      const faults: string[] = []
      const notices: string[] = []
      const stream = await openStream({
        data,
        schema: [{ name: 'x', kind: 'number' }],
        passes: 2,
        onMalformed: ({ line, reason }) => faults.push(`${line}: ${reason}`),
        onNotice: line => notices.push(line)
      })
      assert.equal((await plainStream(stream)).length, 80)
      assert.match(faults.join('\n'), /^41: "many\?words" in the numeric.*\n42: "a" in[^\n]*$/)
      assert.deepEqual(notices, [`${data}: nested columns are ignored: "list"`])
    })
  })

  it('is read from directories, standard input and one column', async () => {
    await withFiles(async (write, directory) => {
      await mkdir(join(directory, 'parts'))
      const part = (values: number[]) => parquetOf([{ name: 'label', data: values, type: 'INT32' }])
      for (const i of [0, 1, 2]) await writeFile(join(directory, 'parts', `part-${i}.parquet`), part([i % 2, 1, 0]))
      const labels = (rows: PlainRow[]) => rows.map(({ label }) => label)
      const expected = [0, 1, 0, 1, 1, 0, 0, 1, 0]
      assert.deepEqual(labels(await rowsOf({ data: join(directory, 'parts') })), expected)
      assert.deepEqual(labels(await rowsOf({ data: join(directory, 'parts', '*.parquet'), passes: 2 })), [
        ...expected,
        ...expected
      ])
      const stdin = Readable.from([Buffer.from(part([1, 0]))])
      assert.deepEqual(labels(await rowsOf({ data: '-', format: 'parquet', stdin })), [1, 0])
      const gap = await write('gap.parquet', parquetOf([{ name: 'x', data: [null, 2, null] }]))
      assert.equal((await rowsOf({ data: gap, unlabelled: true })).length, 3)
    })
  })

  it('is refused in one line if it is damaged, has no flat column, or the options do not fit', async () => {
    await withFiles(async write => {
      const bytes = parquetOf(columns)
      const noise = Uint8Array.from(bytes)
      noise.fill(0xff, 4, 60)
      const cases: [StreamOptions, RegExp][] = [
        [
          { data: await write('a.parquet', bytes.subarray(0, bytes.length - 9)) },
          /a\.parquet: the Parquet file is damag/
        ],
        [{ data: await write('b.parquet', noise), label: 'bought' }, /b\.parquet: the Parquet file is damaged/],
        [
          { data: await write('c.parquet', bytes), label: 'bought', follow: true },
          /c\.parquet is compressed and cannot grow/
        ],
        [
          { data: await write('d.parquet', bytes), label: 'bought', from: 9 },
          /d\.parquet is compressed and has no offs/
        ],
        [
          { data: await write('e.parquet', bytes), delimiter: ';' },
          /delimiter has no meaning for parquet, only for csv/
        ],
        [{ data: await write('f.parquet', bytes) }, /f\.parquet: the header \(.*\) has no label column "label"/],
        [
          { data: await write('g.parquet', parquetOf([{ name: 'l', data: [[1], [2]], type: 'VARIANT' }])) },
          /every column is nested/
        ]
      ]
      for (const [options, message] of cases) {
        await assert.rejects(rowsOf(options), (error: Error) => {
          assert.match(error.message, message)
          assert.ok(!error.message.includes('\n'))
          return true
        })
      }
    })
  })
})

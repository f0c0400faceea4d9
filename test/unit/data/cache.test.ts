/** Parsed rows that are kept: in memory for further passes, and in a file for later runs. */
import assert from 'node:assert/strict'
import { appendFile, readdir, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { openStream } from '../../../src/data/index.js'
import type { StreamOptions } from '../../../src/data/stream-options.js'
import { scratchFolder } from '../../support/scratch.js'
import { type PlainRow, plainRows } from '../../support/streams.js'

const text = (value: number) =>
  Array.from({ length: 3000 }, (_, i) => `${i % 2} ${1 + (i % 9)}:${value} ${20 + (i % 100)}:1\n`).join('')

describe('rows that are kept', () => {
  const dir = scratchFolder()
  const before = process.env.XDG_CACHE_HOME
  let path = ''
  let number = 0

  beforeEach(async () => {
    path = join(dir, `rows${number++}.libsvm`)
    process.env.XDG_CACHE_HOME = join(dir, `home${number}`)
    await writeFile(path, text(2))
    // Whole seconds, which can be set again.
    await utimes(path, 1_000_000, 1_000_000)
  })
  afterEach(() => {
    if (before === undefined) delete process.env.XDG_CACHE_HOME
    else process.env.XDG_CACHE_HOME = before
  })

  async function read(options: Partial<StreamOptions> = {}, afterPass?: () => Promise<void>) {
    const notices: string[] = []
    const stream = await openStream({ data: path, onNotice: notice => notices.push(notice), ...options })
    const rows: PlainRow[] = []
    let pass = 0
    for await (const batch of stream) {
      if (batch.pass !== pass) await afterPass?.()
      pass = batch.pass as number
      rows.push(...plainRows(batch))
    }
    return { rows, notices, skipped: stream.skipped }
  }
  const files = () => readdir(join(process.env.XDG_CACHE_HOME as string, 'admb', 'rows')).catch(() => [])

  /** Replaces the numbers of the file. Only its content shows it if size and time stay. */
  async function replace(value: number, keepsTime: boolean): Promise<void> {
    const { atime, mtime } = await stat(path)
    await writeFile(path, text(value))
    await utimes(path, atime, keepsTime ? mtime : new Date(mtime.getTime() + 5000))
  }

  it('serve later passes of a stream, while the files stay the same', async () => {
    const once = (await read()).rows
    const kept = await read({ passes: 3 }, () => replace(3, true))
    assert.deepEqual(kept.rows, [...once, ...once, ...once])
    await replace(4, false)
    const old = (await read()).rows
    await replace(5, false)
    const changed = (await read()).rows
    await replace(4, false)
    // The rows after the end of the first pass, in which the file is replaced, are read from the file.
    let changes = 0
    const mixed = await read({ passes: 3, maxRows: 8000 }, async () => {
      if (changes++ === 0) await replace(5, false)
    })
    assert.deepEqual(mixed.rows.slice(0, 6000), [...old, ...old])
    assert.deepEqual(mixed.rows.slice(6000), changed.slice(0, 2000))
  })

  it('serve later runs from a file, with other passes, limits and windows', async () => {
    const first = await read({ cache: true, constant: true })
    const [file] = await files()
    assert.match(first.notices.join(), new RegExp(`the cache of its parsed rows is .*${file}`))
    await replace(3, true)
    const second = await read({ cache: true, constant: true, passes: 2 })
    assert.deepEqual(second.rows, [...first.rows, ...first.rows])
    assert.match(second.notices.join(), new RegExp(`^[^,]*rows are read from their cache: .*${file}$`))
    const part = await read({ cache: true, constant: true, maxRows: 700, shuffleWindow: 1, seed: 3, scale: 'none' })
    assert.deepEqual(part.rows, first.rows.slice(0, 700))
    assert.deepEqual(await files(), [file])
  })

  it('are parsed again if the file or the options differ', async () => {
    await read({ cache: true })
    await replace(3, false)
    const changed = await read({ cache: true })
    assert.deepEqual(changed.rows, (await read()).rows)
    assert.match(changed.notices.join(), /the input has changed: its cache is written again/)
    await appendFile(path, '1 5:5\n')
    assert.deepEqual((await read({ cache: true })).rows, (await read()).rows)
    assert.equal((await files()).length, 1)
    assert.deepEqual((await read({ cache: true, hashBits: 3 })).rows, (await read({ hashBits: 3 })).rows)
    assert.equal((await files()).length, 2)
    await read({ cache: true, shard: { index: 1, count: 3 } })
    assert.equal((await files()).length, 3)
  })

  it('leave nothing of a run that ends early', async () => {
    await read({ cache: true, maxRows: 10 })
    assert.deepEqual(await files(), [])
  })

  it('count skipped inputs, and report them once', async () => {
    await appendFile(path, '1 x:1\n')
    const faults: number[] = []
    const onMalformed: StreamOptions['onMalformed'] = ({ line }) => faults.push(line)
    for (const skipped of [1, 1]) assert.equal((await read({ cache: true, onMalformed })).skipped, skipped)
    assert.deepEqual(faults, [3001])
    assert.equal((await read({ passes: 4 })).skipped, 4)
  })

  it('are those of compressed files and of tables with weights', async () => {
    path = join(dir, 'table.csv.gz')
    const lines = Array.from(
      { length: 500 },
      (_, i) => `${i / 7},${['red', 'blue'][i % 2]},${i % 5},${i % 3 ? 'a' : 'b'}`
    )
    await writeFile(path, gzipSync(`x,colour,w,label\n${lines.join('\n')}\n`))
    const options = { label: 'label', weight: 'w', classNames: ['a', 'b'], scale: 'standard', cache: true } as const
    const rowsOf = async () => {
      const rows: unknown[] = []
      for await (const batch of await openStream({ data: path, ...options }))
        rows.push(
          plainRows(batch),
          Array.from({ length: batch.size }, (_, i) => batch.weights?.[i])
        )
      return rows.flat()
    }
    const parsed = await rowsOf()
    const cached = await rowsOf()
    assert.equal((await files()).length, 1)
    assert.deepEqual(cached, parsed)
  })
})

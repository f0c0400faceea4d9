/** Following files that grow: rows as they are appended, log rotation by renaming and by copying, and later files of a directory. */
import assert from 'node:assert/strict'
import { appendFile, copyFile, mkdir, rename, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openStream, type StreamOptions, type StreamPosition } from '../../../src/data/index.js'
import { until } from '../../support/peer-processes.js'
import { plainRows, withFiles } from '../../support/streams.js'

const lines = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, i) => `${(from + i) % 2} 1:${from + i}\n`).join('')
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i)

/** Reads in the background. */
class Reader {
  readonly values: number[] = []
  readonly notices: string[] = []
  position: StreamPosition | undefined
  readonly #abort = new AbortController()
  readonly #done: Promise<void>

  constructor(options: StreamOptions) {
    this.#done = this.#read({ ...options, signal: this.#abort.signal, onNotice: line => this.notices.push(line) })
  }

  async #read(options: StreamOptions): Promise<void> {
    try {
      for await (const batch of await openStream(options)) {
        this.values.push(...plainRows(batch).map(({ features }) => features[0][1]))
        this.position = batch.positionAfter?.(batch.size)
      }
    } catch (error) {
      if (!this.#abort.signal.aborted) throw error
    }
  }

  has(count: number): Promise<void> {
    return Promise.race([until(`${count} rows`, () => this.values.length >= count), this.#done])
  }

  async stop(): Promise<number[]> {
    this.#abort.abort()
    await this.#done
    return this.values
  }
}

/** Calls `test` with a new directory, and a function that gives the paths of its files. */
function inDirectory(test: (directory: string, path: (name: string) => string) => Promise<void>): Promise<void> {
  return withFiles(async (_write, root) => {
    const directory = join(root, 'logs')
    await mkdir(directory)
    await test(directory, name => join(directory, name))
  })
}

describe('follow', function () {
  this.timeout(60_000)
  const follow = (data: string, resume?: StreamPosition) =>
    new Reader({ data, format: 'libsvm', follow: true, from: 'stored', resume })

  it('waits for rows, and for the newline of an incomplete one', () =>
    withFiles(async write => {
      const data = await write('log', `${lines(0, 3)}1 1:`)
      const reader = follow(data)
      await reader.has(3)
      await appendFile(data, '3')
      await appendFile(data, `\n${lines(4, 8)}0 1:99`)
      await reader.has(8)
      assert.deepEqual(await reader.stop(), range(0, 8))
    }))

  it('reads a renamed file to its end, and then the new one', () =>
    withFiles(async write => {
      const data = await write('log', lines(0, 3))
      const reader = follow(data)
      await reader.has(3)
      await rename(data, `${data}.1`)
      await appendFile(`${data}.1`, lines(3, 5))
      await writeFile(data, lines(5, 9))
      await reader.has(9)
      assert.deepEqual(await reader.stop(), range(0, 9))
      assert.match(reader.notices.join('\n'), /^\S+log was rotated: the new file is read from its beginning$/)
    }))

  it('reads a file that was copied and truncated, and the rows that only the copy has', () =>
    withFiles(async write => {
      const data = await write('log', lines(0, 3))
      const reader = follow(data)
      await reader.has(3)
      await appendFile(data, lines(3, 7))
      await copyFile(data, `${data}.1`)
      await truncate(data)
      await appendFile(data, lines(7, 9))
      await reader.has(9)
      assert.deepEqual(await reader.stop(), range(0, 9))
    }))

  it('notices content that was replaced by more bytes', () =>
    withFiles(async write => {
      const data = await write('log', lines(0, 3))
      const reader = follow(data)
      await reader.has(3)
      await writeFile(data, lines(100, 120))
      await reader.has(23)
      assert.deepEqual(await reader.stop(), [...range(0, 3), ...range(100, 120)])
      assert.match(reader.notices.join('\n'), /^\S+log was truncated: it is read from its beginning$/)
    }))

  it('continues after a restart, through files that were rotated in between', () =>
    withFiles(async write => {
      const data = await write('log', lines(0, 3))
      const first = follow(data)
      await first.has(3)
      await first.stop()
      await appendFile(data, lines(3, 5))
      await rename(data, `${data}-20260101`)
      await writeFile(`${data}-20260102`, lines(5, 8))
      await writeFile(data, lines(8, 10))
      const second = follow(data, first.position)
      await second.has(7)
      await appendFile(data, lines(10, 11))
      await second.has(8)
      assert.deepEqual(await second.stop(), range(3, 11))
      assert.match(second.notices[0], /log was rotated: continuing in \S+log-20260101$/)
    }))

  it('follows the last file of a directory, and later ones', () =>
    withFiles(async (_write, root) => {
      const directory = join(root, 'logs')
      await mkdir(directory)
      await writeFile(join(directory, 'a'), lines(0, 3))
      await writeFile(join(directory, 'b'), lines(3, 5))
      const reader = follow(directory)
      await reader.has(5)
      await appendFile(join(directory, 'b'), lines(5, 6))
      await reader.has(6)
      await writeFile(join(directory, 'c'), lines(6, 8))
      await reader.has(8)
      assert.deepEqual(await reader.stop(), range(0, 8))
    }))

  it('reads each row of a directory once while its log is rotated, and after a restart', () =>
    inDirectory(async (directory, path) => {
      await writeFile(path('app.log.1'), lines(0, 3))
      await writeFile(path('app.log'), lines(3, 5))
      const reader = follow(directory)
      await reader.has(5)
      const rotate = async (from: number, to: number) => {
        await rename(path('app.log.1'), path('app.log.2'))
        await rename(path('app.log'), path('app.log.1'))
        await writeFile(path('app.log'), lines(from, to))
      }
      await rotate(5, 7)
      await reader.has(7)
      await appendFile(path('app.log'), lines(7, 9))
      await reader.has(9)
      assert.deepEqual(await reader.stop(), range(0, 9))
      await appendFile(path('app.log'), lines(9, 10))
      await rotate(10, 12)
      await writeFile(path('other.log.1'), lines(12, 14))
      await writeFile(path('other.log'), lines(14, 15))
      const second = follow(directory, reader.position)
      await second.has(6)
      await appendFile(path('other.log'), lines(15, 16))
      await second.has(7)
      assert.deepEqual(await second.stop(), range(9, 16))
    }))

  it('waits if the last file of a directory is deleted, also if that happened while it was stopped', () =>
    inDirectory(async (directory, path) => {
      await writeFile(path('b'), lines(0, 3))
      const reader = follow(directory)
      await reader.has(3)
      await rm(path('b'))
      await until('the deletion is noticed', () => reader.notices.length === 1)
      assert.match(reader.notices[0], /b was deleted: waiting for a file of that name or a later one$/)
      await writeFile(path('c'), lines(3, 5))
      await reader.has(5)
      await reader.stop()
      await rm(path('c'))
      await writeFile(path('a'), lines(90, 95))
      const second = follow(directory, reader.position)
      await until('the missing file is noticed', () => second.notices.length > 0)
      assert.match(second.notices[0], /c is gone: waiting for a file of that name or a later one$/)
      await writeFile(path('d'), lines(5, 7))
      await second.has(2)
      assert.deepEqual(await second.stop(), range(5, 7))
      // Without follow, there is nothing left to read.
      const ended = new Reader({
        data: directory,
        format: 'libsvm',
        resume: {
          ...second.position,
          source: { ...(second.position?.source as object), path: path('x') }
        } as StreamPosition
      })
      assert.deepEqual(await ended.stop(), [])
    }))

  it('reads a new file with the name of a deleted one, and reports which new files it does not read', () =>
    inDirectory(async (directory, path) => {
      await writeFile(path('b'), lines(0, 3))
      const reader = follow(directory)
      await reader.has(3)
      await writeFile(path('a'), lines(90, 95))
      await until('the earlier file is noticed', () => reader.notices.length === 1)
      assert.match(reader.notices[0], /logs.a is new, but its name is before \S+b, which is followed: it is not read$/)
      await rm(path('b'))
      await until('the deletion is noticed', () => reader.notices.length === 2)
      await writeFile(path('b'), lines(3, 6))
      await reader.has(6)
      assert.deepEqual(await reader.stop(), range(0, 6))
    }))

  it('begins at the end with now, and at the first row from an offset on', () =>
    withFiles(async write => {
      const data = await write('log', `${lines(0, 5)}1 1:`)
      const now = new Reader({ data, format: 'libsvm', follow: true, from: 'now' })
      await until('the appended rows', async () => {
        await appendFile(data, '6\n1 1:6\n0 1:')
        return now.values.length > 2
      })
      assert.deepEqual([...new Set(now.values)], [6])
      await now.stop()
      for (const [from, first] of [
        [0, 0],
        [1, 1],
        [6, 1],
        [7, 2]
      ]) {
        const reader = new Reader({ data, format: 'libsvm', from })
        await reader.has(1)
        assert.equal((await reader.stop())[0], first)
      }
    }))

  it('refuses what cannot be followed', () =>
    withFiles(async write => {
      const data = await write('log', lines(0, 3))
      const refused = (options: Partial<StreamOptions>, pattern: RegExp) =>
        assert.rejects(openStream({ data, format: 'libsvm', follow: true, ...options }), {
          name: 'StreamOptionsError',
          message: pattern
        })
      await refused({ passes: 2 }, /^follow reads one pass without an end/)
      await refused({ shuffleWindow: 2 }, /^follow reads one pass without an end/)
      await refused({ data: '-' }, /^standard input/)
      await refused({ data: 'digits', format: undefined }, /^digits is not a file/)
    }))
})

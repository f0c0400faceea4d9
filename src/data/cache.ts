/**
 * Parsed rows of files that are read again instead of being parsed: in memory for further passes of a stream, and with `cache` in a
 * file for later runs. Both are void once a file of the input has another size or time of modification.
 */
import { createHash } from 'node:crypto'
import { type FileHandle, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { importance } from '../base/errors.js'
import type { Reader } from './formats/format.js'
import { blockBytes, decodeBlock, encodeBlock, HEADER_BYTES, lengthOf } from './row-blocks.js'
import type { Rows } from './rows.js'
import { planFrom } from './sources/segments.js'
import { isUrl } from './sources/url.js'
import type { StreamOptions } from './stream-options.js'

/** Limit of the bytes of rows that are kept in memory. */
const MEMORY_BYTES = 64 * 1024 * 1024
/** Bytes of a read. */
const READ_BYTES = 1024 * 1024
/** Bytes of the stamp at the beginning of a file. */
const HEAD_BYTES = 64
/** Changes with the bytes of a file. */
const LAYOUT = 1

/** A block, and what of its pass it completes. */
interface Kept {
  readonly rows: Rows
  /** Inputs of the pass that were skipped up to here. */
  readonly skipped: number
  readonly share: number
}

/** Where blocks are kept. */
interface Blocks {
  /** @returns false if there is no room */
  add(rows: Rows, skipped: number): Promise<boolean>
  /** @param stamp of the files that were read */
  complete(stamp: string): Promise<void>
  drop(): Promise<void>
  /** The blocks of a complete pass over files with this stamp; undefined if there are none. */
  read(stamp: string): Promise<AsyncIterable<Kept> | undefined>
}

/** A reader whose rows are kept. @param options those of its stream */
export function keepRows(reader: Reader, options: StreamOptions): Reader {
  const { data, cache = false, passes = 1 } = options
  const isAsked = options.ids || options.onHashed !== undefined || options.onLabel !== undefined
  if (!(cache || passes > 1) || options.follow || !reader.repeatable || isUrl(data) || isAsked) return reader
  const blocks = cache ? new BlockFile(options) : new BlocksInMemory()
  let isReading = false
  let skipped = 0
  async function* kept(from: AsyncIterable<Kept>): AsyncGenerator<Rows> {
    const before = skipped
    for await (const block of from) {
      skipped = before + block.skipped
      options.onRead?.(block.share)
      yield block.rows
    }
  }
  async function* read(): AsyncGenerator<Rows> {
    const before = reader.skipped
    const stamp = await stampOf(options)
    const found = await blocks.read(stamp)
    if (found !== undefined) return yield* kept(found)
    let isKept = !isReading
    isReading = true
    try {
      for await (const rows of reader.pass()) {
        const isNew = (rows.newClasses?.length ?? 0) > 0
        if (isKept && (isNew || !(await blocks.add(rows, reader.skipped - before)))) {
          isKept = false
          await blocks.drop()
        }
        yield rows
      }
      if (isKept && (await stampOf(options)) === stamp) {
        await blocks.complete(stamp)
        isKept = false
      }
    } finally {
      isReading = false
      if (isKept) await blocks.drop()
    }
  }
  // Getters of the reader stay what they are.
  return Object.create(reader, {
    pass: { value: (source?: unknown) => (source === undefined ? read() : reader.pass(source)) },
    skipped: { get: () => reader.skipped + skipped }
  }) as Reader
}

/** A hash of the files of the input, with their sizes and times. */
async function stampOf({ data, encoding }: StreamOptions): Promise<string> {
  const { segments } = await planFrom(data, undefined, { encoding })
  const files = segments.map(async ({ file }) => {
    const { size, mtimeMs } = await stat(file)
    return [resolve(file), size, mtimeMs]
  })
  return hashOf(await Promise.all(files))
}

/** 64 characters. */
function hashOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex')
}

class BlocksInMemory implements Blocks {
  #blocks: { readonly bytes: Uint8Array; readonly mark: Rows['mark'] }[] = []
  #bytes = 0
  #isTooLarge = false
  #stamp: string | undefined

  async add(rows: Rows, skipped: number): Promise<boolean> {
    const length = blockBytes(rows)
    this.#bytes += length
    this.#isTooLarge ||= this.#bytes > MEMORY_BYTES
    if (this.#isTooLarge) return false
    const bytes = new Uint8Array(length)
    encodeBlock(rows, skipped, bytes)
    this.#blocks.push({ bytes, mark: rows.mark })
    return true
  }

  async complete(stamp: string): Promise<void> {
    this.#stamp = stamp
  }

  async drop(): Promise<void> {
    this.#blocks = []
    this.#bytes = 0
    this.#stamp = undefined
  }

  async read(stamp: string): Promise<AsyncIterable<Kept> | undefined> {
    if (this.#stamp === stamp) return this.#all()
    await this.drop()
    return undefined
  }

  async *#all(): AsyncGenerator<Kept> {
    for (const [i, { bytes, mark }] of this.#blocks.entries()) {
      const { rows, skipped } = decodeBlock(bytes, 0)
      yield { rows: { ...rows, mark }, skipped, share: (i + 1) / this.#blocks.length }
    }
  }
}

/** Options that do not change what a pass yields. */
const OTHER_OPTIONS = new Set([
  ...['data', 'passes', 'maxRows', 'holdout', 'seed', 'shuffleWindow', 'resume', 'from', 'cache'],
  ...['scale', 'scaling', 'scaleLater', 'strict', 'stdin', 'signal', 'source', 'inferLabel', 'countClasses']
])

/**
 * A file in the user's cache folder, whose name is a hash of the input and of the options that rows depend on. It begins with its
 * stamp, and is written under another name until it is complete.
 */
class BlockFile implements Blocks {
  readonly #options: StreamOptions
  #scratch = new Uint8Array(0)
  #path: string | undefined
  #file: FileHandle | undefined
  #isFound = false

  constructor(options: StreamOptions) {
    this.#options = options
  }

  async #named(): Promise<string> {
    if (this.#path !== undefined) return this.#path
    const { data, ...options } = this.#options
    const package_ = await readFile(new URL('../../../package.json', import.meta.url), 'utf8')
    const { version } = JSON.parse(package_) as { version: string }
    const given = Object.entries(options).filter(([name]) => !OTHER_OPTIONS.has(name))
    const key = [LAYOUT, version, resolve(data), given.sort(([a], [b]) => (a < b ? -1 : 1))]
    const folder = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'admb', 'rows')
    await mkdir(folder, { recursive: true })
    this.#path = join(folder, `${hashOf(key)}.rows`)
    return this.#path
  }

  get #partial(): string {
    return `${this.#path}.${process.pid}`
  }

  async add(rows: Rows, skipped: number): Promise<boolean> {
    try {
      if (this.#file === undefined) {
        await this.#named()
        this.#file = await open(this.#partial, 'w')
        // The stamp is written last, so that an incomplete file has none.
        await this.#file.write(new Uint8Array(HEAD_BYTES))
      }
      const length = blockBytes(rows)
      if (length > this.#scratch.length) this.#scratch = new Uint8Array(2 * length)
      encodeBlock(rows, skipped, this.#scratch)
      await this.#file.write(this.#scratch.subarray(0, length))
      return true
    } catch (error) {
      this.#notice(`no cache is written: ${(error as Error).message}`, importance.leftOut)
      return false
    }
  }

  async complete(stamp: string): Promise<void> {
    if (this.#file === undefined) return
    const path = await this.#named()
    await this.#file.write(Buffer.from(stamp), 0, HEAD_BYTES, 0)
    await this.#file.close()
    await rename(this.#partial, path)
    this.#file = undefined
    this.#notice(`the cache of its parsed rows is ${path}`)
  }

  async drop(): Promise<void> {
    await this.#file?.close()
    if (this.#file !== undefined) await rm(this.#partial, { force: true })
    this.#file = undefined
  }

  async read(stamp: string): Promise<AsyncIterable<Kept> | undefined> {
    const path = await this.#named()
    let file: FileHandle
    try {
      file = await open(path)
    } catch {
      return undefined
    }
    const head = Buffer.alloc(HEAD_BYTES)
    await file.read(head, 0, HEAD_BYTES, 0)
    if (head.toString('latin1') === stamp) {
      if (!this.#isFound) this.#notice(`rows are read from their cache: ${path}`)
      this.#isFound = true
      return blocksIn(file)
    }
    await file.close()
    this.#notice('the input has changed: its cache is written again')
    return undefined
  }

  #notice(line: string, importance?: number): void {
    this.#options.onNotice?.(`${this.#options.data}: ${line}`, importance)
  }
}

/** The blocks of a file, which is closed at the end. */
async function* blocksIn(file: FileHandle): AsyncGenerator<Kept> {
  try {
    const { size } = await file.stat()
    let bytes = new Uint8Array(2 * READ_BYTES)
    let [held, next] = [0, HEAD_BYTES]
    for (;;) {
      const { bytesRead } = await file.read(bytes, held, bytes.length - held, next)
      if (bytesRead === 0) return
      next += bytesRead
      held += bytesRead
      let at = 0
      while (held - at >= HEADER_BYTES && held - at >= lengthOf(bytes, at)) {
        const length = lengthOf(bytes, at)
        yield { ...decodeBlock(bytes, at), share: (next - held + at + length) / size }
        at += length
      }
      const longer = held - at >= HEADER_BYTES && lengthOf(bytes, at) > bytes.length
      const more = longer ? new Uint8Array(2 * lengthOf(bytes, at)) : bytes
      more.set(bytes.subarray(at, held))
      bytes = more
      held -= at
    }
  } finally {
    await file.close()
  }
}

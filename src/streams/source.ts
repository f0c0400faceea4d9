/**
 * Bytes of a file or of standard input, decompressed where they are gzip (told by the first two bytes, not by the name),
 * in chunks of bounded size.
 */
import { constants, type Stats } from 'node:fs'
import { access, type FileHandle, open, stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { CorruptGzipError, MissingInputError, UnreadableInputError } from './errors.js'

/** Read at once, ahead of the parser. Two such buffers are in use. */
const BLOCK_BYTES = 1024 * 1024
/** Handed on at once: small enough that a chunk and its parsed rows stay in the processor's cache. */
const CHUNK_BYTES = 128 * 1024
/** The first chunk; each further one is twice as large. Code that was compiled after few but whole chunks stays valid. */
const FIRST_CHUNK_BYTES = 512

export interface SourceOptions {
  /** Stands for standard input. Default `process.stdin`. */
  readonly stdin?: Readable
  /** Ends a wait for input with the signal's reason. */
  readonly signal?: AbortSignal
  /** Is told now and then what share of the input, from 0 to 1, has been dealt with; nothing where its size is not known. */
  readonly onRead?: (share: number) => void
}

/** The name of an input in messages. */
export function sourceName(path: string): string {
  return path === '-' ? '<stdin>' : path
}

/**
 * Looks whether an input is there before anything is read.
 * @returns whether it can be read more than once
 * @throws MissingInputError, UnreadableInputError
 */
export async function checkSource(path: string): Promise<boolean> {
  if (path === '-') return false
  let stats: Stats
  try {
    stats = await stat(path)
    await access(path, constants.R_OK)
  } catch (cause) {
    throw openFailure(path, cause)
  }
  if (stats.isDirectory()) throw new UnreadableInputError(`${path}: is a directory: name a file in it`)
  return stats.isFile()
}

/**
 * Reads an input once. The chunks are valid until the next one is asked for; leaving the iteration closes the file.
 * @param path a file, or `-` for standard input
 * @throws MissingInputError, UnreadableInputError, CorruptGzipError while reading
 */
export function readSource(path: string, options: SourceOptions = {}): AsyncGenerator<Uint8Array> {
  const blocks = path === '-' ? stdinBlocks(options) : fileBlocks(path, options)
  return slices(maybeGunzip(blocks, path))
}

function openFailure(path: string, cause: unknown): Error {
  const code = (cause as NodeJS.ErrnoException).code
  if (code === 'ENOENT') return new MissingInputError(`${path}: no such file: check the path`, { cause })
  return new UnreadableInputError(`${path}: cannot be opened (${code}): check its permissions`, { cause })
}

/** Reads a block ahead, so that the disk works while the parser does. */
async function* fileBlocks(path: string, { signal, onRead }: SourceOptions): AsyncGenerator<Uint8Array> {
  signal?.throwIfAborted()
  let file: FileHandle
  try {
    file = await open(path, 'r')
  } catch (cause) {
    throw openFailure(path, cause)
  }
  let current = new Uint8Array(BLOCK_BYTES)
  let next = new Uint8Array(BLOCK_BYTES)
  let pending = file.read(current, 0, BLOCK_BYTES)
  try {
    const { size } = await file.stat()
    let done = 0
    for (;;) {
      const { bytesRead } = await pending
      signal?.throwIfAborted()
      if (bytesRead === 0) return
      pending = file.read(next, 0, BLOCK_BYTES)
      yield current.subarray(0, bytesRead)
      done += bytesRead
      if (size > 0) onRead?.(Math.min(1, done / size))
      const spare = current
      current = next
      next = spare
    }
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).syscall !== 'read') throw cause
    const code = (cause as NodeJS.ErrnoException).code
    throw new UnreadableInputError(`${path}: reading failed (${code}): check the device`, { cause })
  } finally {
    // The read under way still writes to its buffer; its own failure no longer matters.
    await pending.catch(() => undefined)
    await file.close()
  }
}

async function* stdinBlocks({ stdin = process.stdin, signal }: SourceOptions): AsyncGenerator<Uint8Array> {
  signal?.throwIfAborted()
  const stop = () => stdin.destroy(signal?.reason)
  signal?.addEventListener('abort', stop, { once: true })
  try {
    for await (const block of stdin) yield block as Uint8Array
  } finally {
    signal?.removeEventListener('abort', stop)
  }
}

async function* maybeGunzip(blocks: AsyncGenerator<Uint8Array>, path: string): AsyncGenerator<Uint8Array> {
  const input = await peeked(blocks)
  if (!input.gzip) {
    yield* input.blocks
    return
  }
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES })
  const compressed = Readable.from(copies(input.blocks), { objectMode: true, highWaterMark: 1 })
  compressed.on('error', error => gunzip.destroy(error))
  try {
    for await (const chunk of compressed.pipe(gunzip)) yield chunk as Uint8Array
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code
    if (code === 'Z_BUF_ERROR') {
      throw new CorruptGzipError(`${sourceName(path)}: the gzip data ends early: fetch the file anew`, { cause })
    }
    if (code?.startsWith('Z_')) {
      throw new CorruptGzipError(`${sourceName(path)}: the gzip data is damaged: fetch the file anew`, { cause })
    }
    throw cause
  } finally {
    compressed.destroy()
    gunzip.destroy()
  }
}

/** Looks at the first two bytes, which may come one by one. */
async function peeked(
  source: AsyncGenerator<Uint8Array>
): Promise<{ gzip: boolean; blocks: AsyncGenerator<Uint8Array> }> {
  let head: Uint8Array = new Uint8Array(0)
  while (head.length < 2) {
    const { done, value } = await source.next()
    if (done) break
    head = head.length === 0 ? value : Buffer.concat([head, value])
  }
  async function* again(): AsyncGenerator<Uint8Array> {
    try {
      if (head.length > 0) yield head
      yield* source
    } finally {
      await source.return(undefined)
    }
  }
  return { gzip: head[0] === 0x1f && head[1] === 0x8b, blocks: again() }
}

/** The decompressor queues its input while the blocks are reused. */
async function* copies(blocks: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const block of blocks) yield block.slice()
}

async function* slices(blocks: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
  let length = FIRST_CHUNK_BYTES
  for await (const block of blocks) {
    for (let from = 0; from < block.length; ) {
      const to = Math.min(block.length, from + length)
      yield block.subarray(from, to)
      from = to
      length = Math.min(CHUNK_BYTES, 2 * length)
    }
  }
}

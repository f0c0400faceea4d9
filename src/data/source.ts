/** Reads a file or standard input in chunks of bounded size. What is compressed is recognised by its first bytes. `#source` under Node.js. */
import { constants, type Stats } from 'node:fs'
import { access, type FileHandle, open, readFile, stat } from 'node:fs/promises'

import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { brotliDecompress } from 'node:zlib'
import { MissingInputError, UnreadableInputError } from './errors.js'
import type { SourceOptions } from './options.js'
import { decoded, isEncodedFile } from './sources/encodings.js'

/** Size of a read, ahead of the parser. There are two such buffers. */
const BLOCK_BYTES = 1024 * 1024
/** Size of a chunk, so small that a chunk and its parsed rows fit into the processor's cache. */
const CHUNK_BYTES = 128 * 1024
/** Size of the first chunk; it doubles with each further one. Small first chunks let V8 optimise the parser early. */
const FIRST_CHUNK_BYTES = 512

/** Waits, or throws the signal's reason. */
export async function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  await sleep(milliseconds, undefined, { signal }).catch(error => {
    signal?.throwIfAborted()
    throw error
  })
}

/** Data of this package: `data/NAME.br`, decompressed. */
export async function readPackaged(name: string): Promise<Uint8Array> {
  return promisify(brotliDecompress)(await readFile(new URL(`../../../data/${name}.br`, import.meta.url)))
}

/** The name of an input in messages. */
export function sourceName(path: string): string {
  return path === '-' ? '<stdin>' : path
}

/**
 * Checks that an input exists and can be read.
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
  if (stats.isDirectory()) throw new UnreadableInputError(`${path}: is a directory: give a file`)
  return stats.isFile()
}

/**
 * Reads an input once. A chunk is valid until the next one is requested. Leaving the iteration closes the file.
 * @param path a file, or `-` for standard input
 * @param offset number of bytes to skip, after decoding
 * @throws MissingInputError, UnreadableInputError, CorruptInputError while reading
 */
export function readSource(path: string, options: SourceOptions = {}, offset = 0): AsyncGenerator<Uint8Array> {
  if (offset > 0) return slices(fileFrom(path, options, offset))
  const blocks = path === '-' ? stdinBlocks(options) : fileBlocks(path, options)
  return slices(decoded(blocks, path, sourceName(path), options))
}

/** An encoded file can only be decoded from its start. */
async function* fileFrom(path: string, options: SourceOptions, offset: number): AsyncGenerator<Uint8Array> {
  if (options.encoding !== undefined || (await isEncoded(path)))
    yield* withoutFirst(decoded(fileBlocks(path, options), path, path, options), offset)
  else yield* fileBlocks(path, options, offset)
}

/** Whether a file is compressed, or Parquet. @throws MissingInputError, UnreadableInputError */
export async function isEncoded(path: string): Promise<boolean> {
  try {
    return await isEncodedFile(path)
  } catch (cause) {
    throw openFailure(path, cause)
  }
}

/** Drops the first `count` bytes. */
export async function* withoutFirst(blocks: AsyncGenerator<Uint8Array>, count: number): AsyncGenerator<Uint8Array> {
  let left = count
  for await (const block of blocks) {
    if (left < block.length) yield left > 0 ? block.subarray(left) : block
    left = Math.max(0, left - block.length)
  }
}

/** The error for a file that cannot be opened. */
function openFailure(path: string, cause: unknown): Error {
  const code = (cause as NodeJS.ErrnoException).code
  if (code === 'ENOENT') return new MissingInputError(`${path}: no such file: check the path`, { cause })
  return new UnreadableInputError(`${path}: cannot be opened (${code}): check its permissions`, { cause })
}

/** Reads one block ahead, so that reading and parsing overlap. */
async function* fileBlocks(path: string, { signal, onRead }: SourceOptions, offset = 0): AsyncGenerator<Uint8Array> {
  signal?.throwIfAborted()
  let file: FileHandle
  try {
    file = await open(path, 'r')
  } catch (cause) {
    throw openFailure(path, cause)
  }
  let current = new Uint8Array(BLOCK_BYTES)
  let next = new Uint8Array(BLOCK_BYTES)
  // A pipe has no positions.
  let pending = file.read(current, 0, BLOCK_BYTES, offset === 0 ? null : offset)
  try {
    const { size } = await file.stat()
    let bytesDone = offset
    for (;;) {
      const { bytesRead } = await pending
      signal?.throwIfAborted()
      if (bytesRead === 0) return
      pending = file.read(next, 0, BLOCK_BYTES, offset === 0 ? null : bytesDone + bytesRead)
      yield current.subarray(0, bytesRead)
      bytesDone += bytesRead
      if (size > 0) onRead?.(Math.min(1, bytesDone / size))
      const spare = current
      current = next
      next = spare
    }
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).syscall !== 'read') throw cause
    const code = (cause as NodeJS.ErrnoException).code
    throw new UnreadableInputError(`${path}: reading failed (${code}): check the device`, { cause })
  } finally {
    // The pending read still writes to its buffer. Its failure no longer matters.
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

/** Divides blocks into chunks, of which the first are small. */
export async function* slices(blocks: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
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

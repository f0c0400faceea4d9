/** Files whose first bytes say that they must be decoded to text: gzip, Zstandard and Parquet. */
import { open, stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { Decompress } from 'fzstd'
import { CorruptInputError } from '../errors.js'
import { type ParquetOptions, parquetAsCsv, parquetFileAsCsv } from './parquet.js'

type Encoding = 'gzip' | 'Zstandard' | 'Parquet'

const FIRST_BYTES: Readonly<Record<Encoding, readonly number[]>> = {
  gzip: [0x1f, 0x8b],
  Zstandard: [0x28, 0xb5, 0x2f, 0xfd],
  Parquet: [0x50, 0x41, 0x52, 0x31]
}
const LONGEST = 4
const GZIP_CHUNK_BYTES = 128 * 1024

const encodings = Object.keys(FIRST_BYTES) as Encoding[]

function encodingOf(first: Uint8Array): Encoding | undefined {
  return encodings.find(encoding => FIRST_BYTES[encoding].every((byte, i) => first[i] === byte))
}

/** Whether a prefix may be the beginning of an encoded file. */
function mayBeEncoded(first: Uint8Array): boolean {
  return encodings.some(encoding => first.every((byte, i) => FIRST_BYTES[encoding][i] === byte))
}

/** Whether the first bytes are those of an encoded file, in which offsets have no meaning. */
export function isEncoded(first: Uint8Array): boolean {
  return encodingOf(first) !== undefined
}

/** The same for a file. */
export async function isEncodedFile(path: string): Promise<boolean> {
  const file = await open(path, 'r')
  try {
    const { buffer, bytesRead } = await file.read(new Uint8Array(LONGEST), 0, LONGEST, 0)
    return isEncoded(buffer.subarray(0, bytesRead))
  } finally {
    await file.close()
  }
}

/**
 * Decodes what is encoded.
 * @param path of the blocks, if they are a file
 * @param name in messages
 * @throws CorruptInputError while reading
 */
export async function* decoded(
  blocks: AsyncGenerator<Uint8Array>,
  path: string,
  name: string,
  options: ParquetOptions = {}
): AsyncGenerator<Uint8Array> {
  const input = await peeked(blocks)
  const encoding = encodingOf(input.head)
  switch (encoding) {
    case undefined:
      yield* input.blocks
      return
    case 'gzip':
      yield* gunzipped(input.blocks, name)
      return
    case 'Zstandard':
      yield* zstdDecompressed(input.blocks, name)
      return
    case 'Parquet':
      if (!(await isFile(path))) {
        yield* parquetAsCsv(input.blocks, name, options)
        return
      }
      await blocks.return(undefined)
      yield* parquetFileAsCsv(path, name, options)
      return
    default:
      return encoding satisfies never
  }
}

async function isFile(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined)
  return found?.isFile() ?? false
}

async function* gunzipped(blocks: AsyncGenerator<Uint8Array>, name: string): AsyncGenerator<Uint8Array> {
  const gunzip = createGunzip({ chunkSize: GZIP_CHUNK_BYTES })
  const compressed = Readable.from(copies(blocks), { objectMode: true, highWaterMark: 1 })
  compressed.on('error', error => gunzip.destroy(error))
  try {
    for await (const chunk of compressed.pipe(gunzip)) yield chunk as Uint8Array
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code
    if (!code?.startsWith('Z_')) throw cause
    throw corrupt(name, 'gzip', code === 'Z_BUF_ERROR', cause)
  } finally {
    compressed.destroy()
    gunzip.destroy()
  }
}

/** The decoder does not verify the checksum that a frame may have. */
async function* zstdDecompressed(blocks: AsyncGenerator<Uint8Array>, name: string): AsyncGenerator<Uint8Array> {
  const ready: Uint8Array[] = []
  const zstd = new Decompress(chunk => ready.push(chunk))
  const push = (chunk: Uint8Array, isLast: boolean) => {
    try {
      zstd.push(chunk, isLast)
    } catch (cause) {
      throw corrupt(name, 'Zstandard', isLast, cause)
    }
    return ready.splice(0)
  }
  for await (const block of copies(blocks)) yield* push(block, false)
  yield* push(new Uint8Array(0), true)
}

function corrupt(name: string, encoding: Encoding, isCut: boolean, cause: unknown): CorruptInputError {
  const what = isCut ? 'ends early' : 'is damaged'
  return new CorruptInputError(`${name}: the ${encoding} data ${what}: download the file again`, { cause })
}

/** The first bytes, which may arrive one by one, and all blocks with them. */
async function peeked(
  source: AsyncGenerator<Uint8Array>
): Promise<{ head: Uint8Array; blocks: AsyncGenerator<Uint8Array> }> {
  let head: Uint8Array = new Uint8Array(0)
  // A row of a live source must not wait for the bytes after it.
  while (head.length < LONGEST && mayBeEncoded(head)) {
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
  return { head, blocks: again() }
}

/** Copies each block, because the decompressor queues its input while the blocks are reused. */
async function* copies(blocks: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const block of blocks) yield block.slice()
}

/** Files that must be decoded to UTF-8 text: by their first bytes gzip, Zstandard, Parquet and UTF-16, and others by an option. */
import { open, stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { Decompress } from 'fzstd'
import { CorruptInputError, StreamOptionsError } from '../errors.js'
import { type ParquetOptions, parquetAsCsv, parquetFileAsCsv } from './parquet.js'

/** How content is decoded. */
interface DecodingOptions extends ParquetOptions {
  /** Encoding of the text, as in the Encoding Standard. @default UTF-8, or UTF-16 if it begins with a byte order mark */
  readonly encoding?: string
}

type Encoding = 'gzip' | 'Zstandard' | 'Parquet' | 'utf-16le' | 'utf-16be'

const FIRST_BYTES: readonly (readonly [Encoding, ...bytes: number[]])[] = [
  ['gzip', 0x1f, 0x8b],
  ['Zstandard', 0x28, 0xb5, 0x2f, 0xfd],
  // Skippable frames, which may be the first ones.
  ...Array.from({ length: 16 }, (_, i): [Encoding, ...number[]] => ['Zstandard', 0x50 + i, 0x2a, 0x4d, 0x18]),
  ['Parquet', 0x50, 0x41, 0x52, 0x31],
  ['utf-16le', 0xff, 0xfe],
  ['utf-16be', 0xfe, 0xff]
]
const LONGEST = 4
const GZIP_CHUNK_BYTES = 128 * 1024

function encodingOf(first: Uint8Array): Encoding | undefined {
  return FIRST_BYTES.find(([, ...bytes]) => bytes.every((byte, i) => first[i] === byte))?.[0]
}

/** Whether a prefix may be the beginning of an encoded file. */
function mayBeEncoded(first: Uint8Array): boolean {
  return FIRST_BYTES.some(([, ...bytes]) => first.every((byte, i) => bytes[i] === byte))
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
  options: DecodingOptions = {}
): AsyncGenerator<Uint8Array> {
  const input = await peeked(blocks)
  const encoding = encodingOf(input.head)
  switch (encoding) {
    case undefined:
      yield* options.encoding === undefined ? input.blocks : transcoded(input.blocks, options.encoding)
      return
    case 'utf-16le':
    case 'utf-16be':
      yield* transcoded(input.blocks, options.encoding ?? encoding)
      return
    case 'gzip':
      yield* decompressedText(gunzipped(input.blocks, name), options)
      return
    case 'Zstandard':
      yield* decompressedText(zstdDecompressed(input.blocks, name), options)
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

/** The text of decompressed content. */
async function* decompressedText(
  content: AsyncGenerator<Uint8Array>,
  { encoding: given }: DecodingOptions
): AsyncGenerator<Uint8Array> {
  const { head, blocks } = await peeked(content)
  const found = encodingOf(head)
  const encoding = given ?? (found?.startsWith('utf-16') ? found : undefined)
  yield* encoding === undefined ? blocks : transcoded(blocks, encoding)
}

/** Text of another encoding as UTF-8. Bytes that are no character become U+FFFD. */
async function* transcoded(blocks: AsyncGenerator<Uint8Array>, encoding: string): AsyncGenerator<Uint8Array> {
  const decoder = new TextDecoder(encoding)
  for await (const block of blocks) {
    const text = decoder.decode(block, { stream: true })
    if (text !== '') yield Buffer.from(text)
  }
  const rest = decoder.decode()
  if (rest !== '') yield Buffer.from(rest)
}

/** @throws StreamOptionsError for an encoding that is not known */
export function checkEncoding(encoding: string | undefined): void {
  if (encoding === undefined) return
  try {
    new TextDecoder(encoding)
  } catch {
    throw new StreamOptionsError(
      `encoding '${encoding}' is not known: give one such as windows-1252, iso-8859-2, utf-16le, shift_jis or gb18030`
    )
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

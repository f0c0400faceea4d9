/**
 * A source of text: standard input, files, or a URL, as pieces that are read one after another; and the first bytes of standard
 * input, from which a schema is inferred before the rest is read.
 */
import { stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { StreamOptionsError } from '../errors.js'
import type { SourceOptions } from '../options.js'
import { checkSource, isEncoded, readSource } from '../source.js'
import { checkEncoding } from './encodings.js'
import { type FilePosition, rowStart } from './file-position.js'
import { followed } from './follow.js'
import { type ByteSource, type ByteSourceOptions, filePiece, inputFiles, type Plan, planFrom } from './segments.js'
import { isUrl, openUrl } from './url.js'

/** @throws MissingInputError, UnreadableInputError, StreamOptionsError */
export async function openByteSource(data: string, options: ByteSourceOptions): Promise<ByteSource> {
  const { encoding } = options
  checkEncoding(encoding)
  if (options.follow && encoding !== undefined) {
    throw new StreamOptionsError('follow reads UTF-8: omit encoding, or write the file in UTF-8')
  }
  if (data === '-') {
    if (options.follow) throw new StreamOptionsError('standard input has no end to wait at: remove the option follow')
    return onceSource('-', '<stdin>', options)
  }
  if (isUrl(data)) return openUrl(data, options)
  const files = await inputFiles(data)
  const kinds: boolean[] = []
  for (const file of files) kinds.push(await checkSource(file))
  if (!options.follow) return kinds.every(Boolean) ? fileSource(data, options) : onceSource(data, data, options)
  const last = files[files.length - 1]
  if (!kinds[kinds.length - 1]) throw new StreamOptionsError(`${last} is not a regular file: remove the option follow`)
  if (await isEncoded(last))
    throw new StreamOptionsError(`${last} is compressed and cannot grow: remove the option follow`)
  return fileSource(data, options)
}

/** Standard input and pipes. */
function onceSource(path: string, name: string, options: SourceOptions): ByteSource {
  const start = { path, offset: 0, line: 0 }
  const read = () => readSource(path, options)
  return {
    isReplayable: false,
    async *pieces() {
      yield { name, start, read, readAt: read, isCut: false }
    },
    resume: async () => ({ isSame: false }),
    async locate(from) {
      if (from === 'now') return undefined
      throw new StreamOptionsError(`${name} has no offsets: remove the option from`)
    }
  }
}

function fileSource(data: string, options: ByteSourceOptions): ByteSource {
  // The plan that `resume` has checked, for the same position.
  let checked: { readonly from: FilePosition; readonly plan: Plan } | undefined
  return {
    isReplayable: true,
    async *pieces(from, once = false) {
      const plan = from !== undefined && checked?.from === from ? checked.plan : await planFrom(data, from, options)
      checked = undefined
      if (options.follow && !once) yield* followed(data, plan.segments, options, from?.path)
      else for (const segment of plan.segments) yield filePiece(segment, options)
    },
    async resume(from) {
      const plan = await planFrom(data, from, options)
      checked = { from, plan }
      return plan
    },
    async locate(from, first) {
      const files = await inputFiles(data)
      const path = files[files.length - 1]
      if (typeof from === 'number' && files.length > 1) {
        throw new StreamOptionsError(`${data} is several files, so an offset is ambiguous: give one file`)
      }
      if (options.encoding !== undefined || (await isEncoded(path)))
        throw new StreamOptionsError(`${path} is compressed and has no offsets: remove the option from`)
      const { size } = await stat(path)
      const offset = await rowStart(path, size, offset => readSource(path, {}, offset), from)
      return offset === 0 ? undefined : { path, offset, line: 0, head: first?.head }
    }
  }
}

/** Bytes that suffice. */
const HEAD_BYTES = 1 << 20
/** Time in ms after the first byte in which a slow source fills the head. */
const HEAD_MS = 3000

export interface Head {
  /** A stream of the first bytes, to infer from; each call returns a new one. */
  readonly sample: () => Readable
  /** All bytes, the first ones included. */
  readonly whole: Readable
}

/** Reads until there are 1 MiB, the input ends, or 3 s after its first byte. A last row that is cut counts as malformed in the sample. */
export async function headOf(input: Readable): Promise<Head> {
  const blocks: Uint8Array[] = []
  const iterator = input[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>
  let bytes = 0
  let pending = iterator.next()
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>(resolve => {
    void pending.then(() => {
      timer = setTimeout(() => resolve(undefined), HEAD_MS)
    })
  })
  for (;;) {
    const next = await Promise.race([pending, late])
    if (next === undefined || next.done) break
    blocks.push(next.value)
    bytes += next.value.length
    pending = iterator.next()
    if (bytes >= HEAD_BYTES) break
  }
  clearTimeout(timer)
  async function* all() {
    yield* blocks
    for (let next = await pending; !next.done; next = await iterator.next()) yield next.value
  }
  return { sample: () => Readable.from(blocks), whole: Readable.from(all()) }
}

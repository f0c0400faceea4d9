/**
 * Text from a URL over HTTP. A server with byte ranges is read from any offset; from another one, the bytes before are read and
 * dropped.
 */
import { StreamOptionsError, UnreadableInputError } from '../errors.js'
import { slices, withoutFirst } from '../source.js'
import { checkEncoding, decoded, isEncoded } from './encodings.js'
import { type FilePosition, holds } from './file-position.js'
import type { ByteSource, ByteSourceOptions } from './segments.js'

export function isUrl(data: string): boolean {
  return /^https?:\/\//.test(data)
}

/** @throws UnreadableInputError, StreamOptionsError */
export async function openUrl(url: string, { follow, signal, encoding }: ByteSourceOptions): Promise<ByteSource> {
  if (follow) throw new StreamOptionsError(`${url} is a URL, which cannot be followed: remove the option follow`)
  const { isReplayable, hasRanges } = await probe(url, signal)
  checkEncoding(encoding)
  const readAt = (offset: number) =>
    slices(bytesFrom(url, offset, hasRanges && encoding === undefined, { signal, encoding }))
  const whole: FilePosition = { path: url, offset: 0, line: 0 }
  return {
    isReplayable,
    async *pieces(start = whole) {
      yield { name: url, start, readAt, isCut: false, read: () => readAt(start.offset) }
    },
    async resume(from) {
      if (await holds(readAt, from)) return { isSame: true }
      const notice = `${url} is not what was read before (its content differs): it is read from its beginning, and what was not read before is lost`
      return { isSame: false, notice }
    },
    async locate() {
      throw new StreamOptionsError(`${url} is a URL, which has no offsets: remove the option from`)
    }
  }
}

/** @returns whether the server has byte ranges, and whether the same bytes can be requested again */
async function probe(url: string, signal: AbortSignal | undefined) {
  const answer = await request(url, { range: 'bytes=0-0' }, signal)
  await answer.body?.cancel()
  const { headers } = answer
  const hasRanges = answer.status === 206 || answer.status === 416
  const isStored = ['etag', 'last-modified', 'content-length'].some(name => headers.has(name))
  return { hasRanges, isReplayable: hasRanges || isStored }
}

/** Bytes from an offset on, decoded. */
async function* bytesFrom(
  url: string,
  offset: number,
  hasRanges: boolean,
  { signal, encoding }: Pick<ByteSourceOptions, 'signal' | 'encoding'>
): AsyncGenerator<Uint8Array> {
  if (offset > 0 && hasRanges && !(await isCompressed(url, signal))) {
    yield* body(await request(url, { range: `bytes=${offset}-` }, signal), url)
    return
  }
  yield* withoutFirst(decoded(body(await request(url, {}, signal), url), url, url, { encoding }), offset)
}

async function isCompressed(url: string, signal: AbortSignal | undefined): Promise<boolean> {
  const head: number[] = []
  for await (const bytes of body(await request(url, { range: 'bytes=0-3' }, signal), url)) head.push(...bytes)
  return isEncoded(Uint8Array.from(head))
}

async function* body(answer: Response, url: string): AsyncGenerator<Uint8Array> {
  if (answer.status === 416 || answer.body === null) return
  try {
    for await (const chunk of answer.body) yield chunk as Uint8Array
  } catch (cause) {
    if ((cause as Error).name === 'AbortError') throw cause
    throw new UnreadableInputError(`${url}: the connection ended early: try again`, { cause })
  }
}

/** @throws UnreadableInputError unless the answer is a success, or 416 for a range behind the end */
async function request(
  url: string,
  headers: Record<string, string>,
  signal: AbortSignal | undefined
): Promise<Response> {
  let answer: Response
  try {
    // Offsets are those of the resource, not of a compressed transfer.
    answer = await fetch(url, { headers: { 'accept-encoding': 'identity', ...headers }, signal })
  } catch (cause) {
    signal?.throwIfAborted()
    const reason = ((cause as Error).cause as { code?: string } | undefined)?.code ?? (cause as Error).message
    throw new UnreadableInputError(`${url}: cannot be reached (${reason}): check the address`, { cause })
  }
  if (answer.ok || answer.status === 416) return answer
  await answer.body?.cancel()
  throw new UnreadableInputError(`${url}: the server answers ${answer.status} ${answer.statusText}: check the address`)
}

/**
 * Text from a URL over HTTP. A server with byte ranges is read from any offset; from another one, the bytes before are read and
 * dropped. A resource that grows is polled with a range and, while it has not changed, answered by 304.
 */
import { StreamOptionsError, UnreadableInputError } from '../errors.js'
import { pause, slices, withoutFirst } from '../source.js'
import { checkEncoding, decoded, isEncoded } from './encodings.js'
import { type FilePosition, holds, rowStart } from './file-position.js'
import type { ByteSource, ByteSourceOptions, Piece } from './segments.js'

/** Polling interval of a resource that does not grow, in milliseconds. */
const POLL_MS = 5000
/** Bytes before the end that must stay as they are while a resource grows. */
const TAIL_BYTES = 64

export function isUrl(data: string): boolean {
  return /^https?:\/\//.test(data)
}

/** Properties of a resource, from the first response. */
interface Resource {
  /** Whether the same bytes can be requested again. */
  readonly isReplayable: boolean
  readonly hasRanges: boolean
  /** In bytes, if the server supports ranges and reports it. */
  readonly size: number | undefined
}

/**
 * @param pollMs polling interval of a resource that does not grow
 * @throws UnreadableInputError, StreamOptionsError
 */
export async function openUrl(url: string, options: ByteSourceOptions, pollMs = POLL_MS): Promise<ByteSource> {
  const { isReplayable, hasRanges, size } = await probe(url, options.signal)
  const { follow = false, signal, encoding } = options
  checkEncoding(encoding)
  if (follow && encoding !== undefined) throw new StreamOptionsError('follow reads UTF-8: omit encoding')
  if (follow && !isReplayable) {
    throw new StreamOptionsError(
      `${url} has no validator or length, so it cannot be followed: remove the option follow`
    )
  }
  const say = options.onNotice ?? (() => undefined)
  const readAt = (offset: number) =>
    slices(bytesFrom(url, offset, hasRanges && encoding === undefined, { signal, encoding }))
  const whole: FilePosition = { path: url, offset: 0, line: 0 }
  const piece = (start: FilePosition): Piece => ({
    name: url,
    start,
    readAt,
    isCut: false,
    read: () => readAt(start.offset)
  })
  return {
    isReplayable,
    async *pieces(from = whole, once = false) {
      if (!follow || once) {
        yield piece(from)
        return
      }
      for (let start = from; ; start = whole) {
        const growing = new GrowingResource(url, start.offset, hasRanges, pollMs, signal)
        yield { ...piece(start), read: () => growing.read(), isCut: true }
        say(`${url} was replaced: it is read from its beginning`)
      }
    },
    async resume(from) {
      if (await holds(readAt, from)) return { isSame: true }
      const notice = `${url} is not what was read before (its content differs): it is read from its beginning, and what was not read before is lost`
      return { isSame: false, notice }
    },
    async locate(from, first) {
      if (!hasRanges || size === undefined) {
        throw new StreamOptionsError(
          `${url}: the server has no byte ranges, so no row can be found: remove the option from`
        )
      }
      if (await isCompressed(url, signal)) {
        throw new StreamOptionsError(`${url} is compressed and has no offsets: remove the option from`)
      }
      const offset = await rowStart(url, size, readAt, from)
      return offset === 0 ? undefined : { path: url, offset, line: 0, head: first?.head }
    }
  }
}

async function probe(url: string, signal: AbortSignal | undefined): Promise<Resource> {
  const answer = await request(url, { range: 'bytes=0-0' }, signal)
  await answer.body?.cancel()
  const { headers } = answer
  const hasRanges = answer.status === 206 || answer.status === 416
  const isStored = ['etag', 'last-modified', 'content-length'].some(name => headers.has(name))
  const total = /\/(\d+)$/.exec(headers.get('content-range') ?? '')?.[1]
  const size = total === undefined ? undefined : Number(total)
  return { hasRanges, size, isReplayable: hasRanges || isStored }
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

/** @throws UnreadableInputError unless the answer is a success, 304, or 416 for a range behind the end */
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
  if (answer.ok || answer.status === 304 || answer.status === 416) return answer
  await answer.body?.cancel()
  throw new UnreadableInputError(`${url}: the server answers ${answer.status} ${answer.statusText}: check the address`)
}

class GrowingResource {
  readonly #url: string
  readonly #hasRanges: boolean
  readonly #pollMs: number
  readonly #signal: AbortSignal | undefined
  /** The bytes before `#offset`. */
  #tail = Buffer.alloc(0)
  #offset: number
  #validators: Record<string, string> = {}

  constructor(url: string, offset: number, hasRanges: boolean, pollMs: number, signal: AbortSignal | undefined) {
    this.#url = url
    this.#offset = offset
    this.#hasRanges = hasRanges
    this.#pollMs = pollMs
    this.#signal = signal
  }

  /** Reads until the resource is replaced. */
  async *read(): AsyncGenerator<Uint8Array> {
    if (this.#hasRanges && this.#offset > 0) await this.#readTail()
    for (let isFirst = true; ; isFirst = false) {
      if (!isFirst) await pause(this.#pollMs, this.#signal)
      const from = this.#offset - this.#tail.length
      const range: Record<string, string> = this.#hasRanges && from > 0 ? { range: `bytes=${from}-` } : {}
      let answer: Response
      try {
        answer = await request(this.#url, { ...range, ...this.#validators }, this.#signal)
      } catch (error) {
        // A server that is unavailable is asked again.
        if (isFirst || this.#signal?.aborted) throw error
        continue
      }
      if (answer.status === 304) continue
      const isPart = answer.status === 206
      if (answer.status === 416) {
        await answer.body?.cancel()
        return
      }
      const before = isPart ? this.#tail.length : this.#offset
      try {
        if (!(yield* this.#rest(body(answer, this.#url), before))) return
      } catch (error) {
        // The rest is requested again.
        if (!(error instanceof UnreadableInputError)) throw error
        continue
      }
      this.#remember(answer.headers)
    }
  }

  /** Reads the bytes before the start, by which a replaced resource is recognised. */
  async #readTail(): Promise<void> {
    const range = `bytes=${Math.max(0, this.#offset - TAIL_BYTES)}-${this.#offset - 1}`
    const parts: Uint8Array[] = []
    for await (const part of body(await request(this.#url, { range }, this.#signal), this.#url))
      parts.push(part.slice())
    this.#tail = Buffer.concat(parts)
  }

  /** Yields the bytes after the first `before`, which must end as before. @returns whether they do */
  async *#rest(bytes: AsyncGenerator<Uint8Array>, before: number): AsyncGenerator<Uint8Array, boolean> {
    let known = Buffer.alloc(0)
    let left = before
    let isChecked = false
    for await (const chunk of bytes) {
      const old = chunk.subarray(0, left)
      known = Buffer.from(Buffer.concat([known, old]).subarray(-TAIL_BYTES))
      left -= old.length
      if (left > 0) continue
      if (
        !isChecked &&
        !known.subarray(-this.#tail.length || known.length).equals(this.#tail) &&
        this.#tail.length > 0
      ) {
        return false
      }
      isChecked = true
      const fresh = chunk.subarray(old.length)
      if (fresh.length === 0) continue
      this.#offset += fresh.length
      this.#tail = Buffer.from(Buffer.concat([this.#tail, fresh]).subarray(-TAIL_BYTES))
      yield fresh
    }
    // Fewer bytes than before are not the same resource.
    return left === 0
  }

  #remember(headers: Headers): void {
    const etag = headers.get('etag')
    const modified = headers.get('last-modified')
    this.#validators = {}
    if (etag !== null) this.#validators['if-none-match'] = etag
    else if (modified !== null) this.#validators['if-modified-since'] = modified
  }
}

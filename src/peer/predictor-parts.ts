/**
 * A large predictor in parts, which peers get from several others at once, and resume after an interruption. All holders of a
 * predictor have the same parts, because its blocks are the same bits. Whoever serves one keeps it while it is asked for, although its
 * node has gone on: the steps from it are shorter than another whole predictor.
 */
import { sha256 } from '#platform'
import type { PredictorId } from '../admb/index.js'

/** Size in bytes of each part but the last one. */
export const PART_BYTES = 2 ** 22
/** Whole predictors of at least this many bytes are downloaded in parts. */
export const DOWNLOAD_BYTES = 2 * PART_BYTES
/** Time in ms without a request after which a predictor is no longer served. */
const SERVED_MS = 120_000

/** What the parts of a predictor are. */
export interface Manifest {
  /** Digest of the predictor, its name in requests. */
  readonly digest: string
  readonly updates: number
  /** Sizes in bytes of its encoded blocks, which parts contain one after the other. */
  readonly sizes: readonly number[]
  /** SHA-256 of each part, in hexadecimal digits. */
  readonly hashes: readonly string[]
  /** Its id and lineage, as `SavedBlocks.head`. Holders need not know the same ancestors. */
  readonly head: Uint8Array
}

/** A manifest as bytes: the length of a JSON object (u32), the object, and the head. */
export function encodeManifest({ head, ...others }: Manifest): Uint8Array {
  const text = new TextEncoder().encode(JSON.stringify(others))
  const bytes = new Uint8Array(4 + text.length + head.length)
  new DataView(bytes.buffer).setUint32(0, text.length, true)
  bytes.set(text, 4)
  bytes.set(head, 4 + text.length)
  return bytes
}

/**
 * Reads a manifest of another peer.
 * @param maxBytes maximum size of a predictor
 * @throws RangeError if it is malformed
 */
export function decodeManifest(bytes: Uint8Array, maxBytes: number): Manifest {
  const malformed = new RangeError('malformed manifest of a predictor')
  if (bytes.length < 4) throw malformed
  const end = 4 + new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true)
  let parsed: Partial<Manifest>
  try {
    parsed = Object(JSON.parse(new TextDecoder().decode(bytes.subarray(4, end))))
  } catch {
    throw malformed
  }
  const { digest, updates, sizes, hashes } = parsed
  if (typeof digest !== 'string' || !Number.isSafeInteger(updates) || !Array.isArray(sizes) || !Array.isArray(hashes))
    throw malformed
  if (!/^[0-9a-f]{32}$/.test(digest) || !sizes.every(size => Number.isSafeInteger(size) && size >= 0)) throw malformed
  const total = sizes.reduce((sum, size) => sum + size, 0)
  if (!hashes.every(hash => typeof hash === 'string')) throw malformed
  if (total > maxBytes || hashes.length !== Math.ceil(total / PART_BYTES)) throw malformed
  return { digest, updates: updates as number, sizes, hashes, head: bytes.slice(end) }
}

/** Whether two holders serve the same parts. */
export function haveSameParts(a: Manifest, b: Manifest): boolean {
  return a.digest === b.digest && a.sizes.join() === b.sizes.join() && a.hashes.join() === b.hashes.join()
}

/** SHA-256, in hexadecimal digits, computed by another thread. Pages that came over HTTP have no `subtle`. */
export async function hashOf(part: Uint8Array): Promise<string> {
  const subtle = crypto.subtle as typeof crypto.subtle | undefined
  const hash = subtle ? new Uint8Array(await subtle.digest('SHA-256', part as Uint8Array<ArrayBuffer>)) : sha256(part)
  return Array.from(hash, byte => byte.toString(16).padStart(2, '0')).join('')
}

/** A predictor that has arrived, as `StoredBlocks` in one array. */
export interface Downloaded {
  readonly head: Uint8Array
  /** Sizes in bytes of the blocks in `body`, which owns its whole ArrayBuffer. */
  readonly sizes: readonly number[]
  readonly body: Uint8Array<ArrayBuffer>
  readonly from: string
}

/** A predictor for peers that download it, as `SavedBlocks`. */
export interface SentParts {
  readonly id: PredictorId
  readonly head: Uint8Array
  readonly blocks: readonly Uint8Array[]
}

interface Served {
  readonly id: PredictorId
  readonly blocks: readonly Uint8Array[]
  readonly hashes: number
  readonly manifest: Uint8Array
}

/** Which predictor is asked for: the one with a digest, or any with at least that many updates. */
export type PartsQuery = { readonly digest: string } | { readonly updates: number }

interface PartServerOptions {
  /**
   * Encodes the current predictor.
   * @returns 'held' if the one that is already served fits the query, and steps lead from it to the current one; undefined if
   * neither fits, or it is too small to have parts
   */
  readonly encode: (query: PartsQuery, held: PredictorId | undefined) => Promise<SentParts | 'held' | undefined>
  /** Nobody has asked for the predictor for some time. */
  readonly ended: () => void
}

/** Serves the parts of one predictor at a time. */
export class PartServer {
  readonly #options: PartServerOptions
  #served: Served | undefined
  #queries: Promise<unknown> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined

  constructor(options: PartServerOptions) {
    this.#options = options
  }

  /** Answers `manifest since N`, `manifest of DIGEST` and `part DIGEST K`; undefined if it has no answer. */
  async answer(request: string): Promise<Uint8Array | undefined> {
    const [what, first = '', second = ''] = request.split(' ')
    if (what === 'part') return this.#part(first, Number(second))
    if (what !== 'manifest') return undefined
    const query = first === 'of' ? { digest: second } : { updates: Number(second) }
    // Peers that join together receive the same predictor.
    const answered = this.#queries.then(() => this.#manifest(query))
    this.#queries = answered.catch(() => undefined)
    return answered
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#served = undefined
  }

  async #manifest(query: PartsQuery): Promise<Uint8Array | undefined> {
    const found = await this.#options.encode(query, this.#served?.id)
    if (found === undefined) return undefined
    if (found !== 'held') this.#served = await served(found)
    this.#used()
    return this.#served?.manifest
  }

  #part(digest: string, index: number): Uint8Array | undefined {
    const predictor = this.#served
    if (predictor?.id.digest !== digest || !(index >= 0 && index < predictor.hashes)) return undefined
    this.#used()
    return partOf(predictor.blocks, index)
  }

  #used(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.stop()
      this.#options.ended()
    }, SERVED_MS)
    this.#timer.unref?.()
  }
}

async function served({ id, head, blocks }: SentParts): Promise<Served> {
  const sizes = blocks.map(({ length }) => length)
  const count = Math.ceil(sizes.reduce((sum, size) => sum + size, 0) / PART_BYTES)
  const hashes: string[] = []
  for (let index = 0; index < count; index++) hashes.push(await hashOf(partOf(blocks, index)))
  const { digest, updates } = id
  return { id, blocks, hashes: count, manifest: encodeManifest({ digest, updates, sizes, hashes, head }) }
}

/** A copy of a part, which may contain the ends and beginnings of blocks. */
function partOf(blocks: readonly Uint8Array[], index: number): Uint8Array {
  const pieces: Uint8Array[] = []
  let at = index * PART_BYTES
  let missing = PART_BYTES
  for (const block of blocks) {
    if (at < block.length && missing > 0) {
      pieces.push(block.subarray(at, at + missing))
      missing -= Math.min(missing, block.length - at)
    }
    at = Math.max(0, at - block.length)
  }
  const part = new Uint8Array(PART_BYTES - missing)
  let length = 0
  for (const piece of pieces) {
    part.set(piece, length)
    length += piece.length
  }
  return part
}

/** The encoded blocks of a predictor, without copies. */
export function blocksIn({ sizes, body }: Pick<Downloaded, 'sizes' | 'body'>): Uint8Array[] {
  const blocks: Uint8Array[] = []
  let at = 0
  for (const size of sizes) {
    blocks.push(body.subarray(at, at + size))
    at += size
  }
  return blocks
}

/** Gets a large predictor in parts from several peers at once. What has arrived is kept for a resumed download. */
import { sleep } from '#platform'
import type { Log } from '../network/index.js'
import type { Store } from '../storage/index.js'
import { decodeManifest, encodeManifest, hashOf, haveSameParts, type Manifest, PART_BYTES } from './predictor-parts.js'

/** Maximum number of peers that are asked for parts at once. */
const MAX_SOURCES = 4
/** Requests to each of them at once, so that its line is not idle between two parts. */
const REQUESTS = 2
/** Failures in a row after which a peer is asked no more, and the time between two requests, in ms. */
const MAX_FAILURES = 3
const RETRY_MS = 1000

/** A predictor that has arrived, as `StoredBlocks` in one array. */
export interface Downloaded {
  readonly head: Uint8Array
  /** Sizes in bytes of the blocks in `body`, which owns its whole ArrayBuffer. */
  readonly sizes: readonly number[]
  readonly body: Uint8Array<ArrayBuffer>
  readonly from: string
}

interface DownloadOptions {
  /** Sends a request to a peer. @throws Error if it does not answer */
  readonly fetch: (from: string, request: string) => Promise<Uint8Array>
  /** Other peers that may hold a predictor, as a peer names them. */
  readonly holders: (from: string) => Promise<readonly string[]>
  /** Maximum size of a predictor in bytes. */
  readonly maxBytes: number
  /** Keeps parts for a later run. @default only this run has them */
  readonly store?: Pick<Store, 'keptPart' | 'keepPart' | 'dropParts'>
  /** Whether a predictor with that many updates may still be better than the own one. */
  readonly isWanted: (updates: number) => boolean
  /** Aborted when the peer stops. */
  readonly signal: AbortSignal
  readonly log: Log
}

/** What has arrived of a predictor. */
interface Partial {
  readonly manifest: Manifest
  readonly body: Uint8Array<ArrayBuffer>
  readonly missing: Set<number>
}

export class PredictorDownload {
  readonly #options: DownloadOptions
  #partial: Partial | undefined
  /** Parts that nobody is asked for. */
  #waiting: number[] = []
  readonly #inFlight = new Set<Promise<boolean>>()

  constructor(options: DownloadOptions) {
    this.#options = options
  }

  /**
   * Downloads a predictor. One download runs at a time.
   * @param updates minimum number of its updates
   * @param candidates peers that may hold it, the best ones first
   * @returns undefined if none of them delivers it whole
   */
  async get(updates: number, candidates: readonly string[]): Promise<Downloaded | undefined> {
    const asked = candidates.slice(0, MAX_SOURCES)
    const first = (await this.#resumed(updates, asked)) ?? (await this.#begun(updates, asked))
    if (first === undefined || this.#partial === undefined) return undefined
    const { manifest, missing } = this.#partial
    this.#waiting = [...missing]
    const start = performance.now()
    const others = asked.filter(peer => peer !== first)
    const join = (peers: readonly string[]) => Promise.all(peers.map(peer => this.#join(peer, manifest)))
    // A peer that joins is connected to one other, which knows more of them.
    const named = this.#options.holders(first).then(
      peers => join(peers.filter(peer => !asked.includes(peer)).slice(0, MAX_SOURCES - asked.length)),
      () => undefined
    )
    await Promise.all([this.#pull(first), join(others), named])
    if (missing.size > 0) return undefined
    const { body } = this.#partial
    await this.drop()
    const seconds = ((performance.now() - start) / 1000).toFixed(1)
    const { log } = this.#options
    log('info', `received a predictor with ${manifest.updates} updates: ${body.length} bytes in ${seconds} s`, {})
    return { head: manifest.head, sizes: manifest.sizes, body, from: first }
  }

  /** Forgets what has arrived. */
  async drop(): Promise<void> {
    this.#partial = undefined
    await this.#options.store?.dropParts()
  }

  /** Resumes an earlier download. @returns a peer that still serves the rest */
  async #resumed(updates: number, candidates: readonly string[]): Promise<string | undefined> {
    this.#partial ??= await this.#kept()
    const { manifest, missing } = this.#partial ?? {}
    if (manifest === undefined || manifest.updates < updates) return undefined
    for (const peer of candidates) {
      if (!(await this.#serves(peer, manifest))) continue
      const { length } = manifest.hashes
      const have = length - (missing?.size ?? 0)
      this.#options.log('info', `the download of a predictor resumes: ${have} of ${length} parts are there`, {})
      return peer
    }
    return undefined
  }

  /** Asks for a manifest. @returns the peer that has answered */
  async #begun(updates: number, candidates: readonly string[]): Promise<string | undefined> {
    for (const peer of candidates) {
      const manifest = await this.#manifest(peer, `manifest since ${updates}`)
      if (manifest === undefined || manifest.updates < updates) continue
      await this.drop()
      this.#partial = partialOf(manifest)
      await this.#options.store?.keepPart('manifest', encodeManifest(manifest))
      return peer
    }
    return undefined
  }

  /** The parts that an earlier run has stored. */
  async #kept(): Promise<Partial | undefined> {
    const { store, maxBytes } = this.#options
    const bytes = await store?.keptPart('manifest')
    if (store === undefined || bytes === undefined) return undefined
    const partial = partialOf(decodeManifest(bytes, maxBytes))
    for (const index of [...partial.missing]) {
      const part = await store.keptPart(String(index))
      if (part && (await hashOf(part)) === partial.manifest.hashes[index]) put(partial, index, part)
    }
    return partial
  }

  async #join(peer: string, manifest: Manifest): Promise<void> {
    if (await this.#serves(peer, manifest)) await this.#pull(peer)
  }

  async #serves(peer: string, manifest: Manifest): Promise<boolean> {
    const theirs = await this.#manifest(peer, `manifest of ${manifest.digest}`)
    return theirs !== undefined && haveSameParts(theirs, manifest)
  }

  async #manifest(peer: string, request: string): Promise<Manifest | undefined> {
    const { fetch, maxBytes, log } = this.#options
    try {
      return decodeManifest(await fetch(peer, request), maxBytes)
    } catch (error) {
      log('debug', `no predictor in parts: ${(error as Error).message}`, { peer })
      return undefined
    }
  }

  async #pull(peer: string): Promise<void> {
    const { signal, isWanted } = this.#options
    const { updates } = (this.#partial as Partial).manifest
    let failures = 0
    const request = async () => {
      while (failures < MAX_FAILURES && !signal.aborted && isWanted(updates)) {
        const index = this.#waiting.shift()
        if (index === undefined) {
          // A part that another peer does not deliver is asked for again.
          if (this.#inFlight.size === 0) return
          await Promise.race(this.#inFlight)
          continue
        }
        const attempt = this.#attempt(peer, index)
        this.#inFlight.add(attempt)
        const hasArrived = await attempt
        this.#inFlight.delete(attempt)
        failures = hasArrived ? 0 : failures + 1
        if (!hasArrived) await sleep(RETRY_MS, signal).catch(() => undefined)
      }
    }
    await Promise.all(Array.from({ length: REQUESTS }, request))
  }

  /** @returns whether the part has arrived; otherwise it waits again */
  async #attempt(peer: string, index: number): Promise<boolean> {
    const { fetch, store, log } = this.#options
    const partial = this.#partial as Partial
    const { digest, hashes } = partial.manifest
    try {
      const part = await fetch(peer, `part ${digest} ${index}`)
      if ((await hashOf(part)) !== hashes[index]) throw new Error('it is not the one of the manifest')
      put(partial, index, part)
      await store?.keepPart(String(index), part)
      log('debug', `part ${index + 1} of ${hashes.length} of a predictor has arrived`, { peer })
      return true
    } catch (error) {
      log(
        'debug',
        `part ${index + 1} of ${hashes.length} of a predictor has not arrived: ${(error as Error).message}`,
        { peer }
      )
      this.#waiting.unshift(index)
      return false
    }
  }
}

function partialOf(manifest: Manifest): Partial {
  const body = new Uint8Array(manifest.sizes.reduce((sum, size) => sum + size, 0))
  return { manifest, body, missing: new Set(manifest.hashes.keys()) }
}

function put({ body, missing }: Partial, index: number, part: Uint8Array): void {
  body.set(part, index * PART_BYTES)
  missing.delete(index)
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

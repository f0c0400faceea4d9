/** Gets a large predictor in parts from several peers at once. What has arrived is kept for a resumed download. */
import { sleep } from '#platform'
import { type Log, withTimeLimit } from '../network/index.js'
import type { Store } from '../storage/index.js'
import {
  type Downloaded,
  decodeManifest,
  encodeManifest,
  hashOf,
  haveSameParts,
  type Manifest,
  PART_BYTES
} from './predictor-parts.js'

/** Maximum number of peers that are asked for parts at once. */
const MAX_SOURCES = 4
/** Requests to each of them at once, so that its line is not idle between two parts. */
const REQUESTS = 2
/** Failures in a row after which a peer is asked no more, and the time between two requests, in ms. */
const MAX_FAILURES = 3
const RETRY_MS = 1000
/** Time in ms after which a part counts as failed. */
const PART_MS = 300_000

interface DownloadOptions {
  /** Sends a request to a peer. @throws Error if it does not answer, the signal's reason */
  readonly fetch: (from: string, request: string, signal: AbortSignal) => Promise<Uint8Array>
  /** Other peers that may hold a predictor, as a peer names them. */
  readonly holders: (from: string, signal: AbortSignal) => Promise<readonly string[]>
  /** Maximum size of a predictor in bytes. */
  readonly maxBytes: number
  /** Keeps parts for a later run. @default only this run has them */
  readonly store?: Pick<Store, 'keptPart' | 'keepPart' | 'dropParts'>
  /** Whether a predictor with that many updates may still be better than the own one. */
  readonly isWanted: (updates: number) => boolean
  /** Time in ms after which another peer that has nothing else to do is asked for a part as well. @default 20000 */
  readonly slowMs?: number
  /** Time in ms after which a peer has no manifest, and names nobody. @default 60000 */
  readonly manifestMs?: number
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
  /** Parts on their way, with the peer that is asked first, and since when. */
  readonly #asked = new Map<number, { readonly peer: string; readonly since: number }>()
  readonly #inFlight = new Set<Promise<boolean>>()
  /** Ends the requests that still run when all parts have arrived. */
  #end = new AbortController()
  #isRunning = false
  /** Updates of the predictor whose parts are stored, infinite if there are none; undefined if this is not known yet. */
  #stored: number | undefined

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
    this.#isRunning = true
    try {
      return await this.#get(updates, candidates)
    } finally {
      this.#isRunning = false
      // It is read again when the download resumes.
      if (this.#options.store) this.#partial = undefined
    }
  }

  /** Ends the download of a predictor that is not better any more, and forgets what has arrived of it. */
  async tidy(): Promise<void> {
    const { isWanted } = this.#options
    if (this.#isRunning) {
      if (this.#partial && !isWanted(this.#partial.manifest.updates)) this.#end.abort()
      return
    }
    this.#stored ??= (await this.#keptManifest())?.updates ?? Number.POSITIVE_INFINITY
    if (!this.#isRunning && !isWanted(this.#stored)) await this.drop()
  }

  async #get(updates: number, candidates: readonly string[]): Promise<Downloaded | undefined> {
    this.#end = new AbortController()
    const asked = candidates.slice(0, MAX_SOURCES)
    const first = (await this.#resumed(updates, asked)) ?? (await this.#begun(updates, asked))
    if (first === undefined || this.#partial === undefined) return undefined
    const { manifest, missing } = this.#partial
    const start = performance.now()
    const others = asked.filter(peer => peer !== first)
    const join = (peers: readonly string[]) => Promise.all(peers.map(peer => this.#join(peer, manifest)))
    // A peer that joins is connected to one other, which knows more of them.
    const named = this.#bounded(signal => this.#options.holders(first, signal)).then(
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
    this.#stored = Number.POSITIVE_INFINITY
    await this.#options.store?.dropParts().catch(this.#notStored)
  }

  /** Stores what has arrived. The download goes on without, for example if the disk is full. */
  async #keep(name: string, bytes: Uint8Array): Promise<void> {
    await this.#options.store?.keepPart(name, bytes).catch(this.#notStored)
  }

  readonly #notStored = (error: Error) => {
    const reason = `the download of a predictor could not resume after a restart: ${error.message}`
    this.#options.log('debug', reason, {})
    return undefined
  }

  #bounded<T>(action: (signal: AbortSignal) => Promise<T>, ms = this.#options.manifestMs ?? 60_000): Promise<T> {
    return withTimeLimit(ms, [this.#options.signal, this.#end.signal], action)
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
      this.#stored = manifest.updates
      await this.#keep('manifest', encodeManifest(manifest))
      return peer
    }
    return undefined
  }

  async #keptManifest(): Promise<Manifest | undefined> {
    const { store, maxBytes } = this.#options
    try {
      const bytes = await store?.keptPart('manifest')
      return bytes && decodeManifest(bytes, maxBytes)
    } catch (error) {
      this.#notStored(error as Error)
      return undefined
    }
  }

  /** The parts that an earlier run has stored. */
  async #kept(): Promise<Partial | undefined> {
    const { store } = this.#options
    const manifest = await this.#keptManifest()
    if (store === undefined || manifest === undefined) return undefined
    const partial = partialOf(manifest)
    for (const index of [...partial.missing]) {
      const part = await store.keptPart(String(index)).catch(this.#notStored)
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
      return decodeManifest(await this.#bounded(signal => fetch(peer, request, signal)), maxBytes)
    } catch (error) {
      log('debug', `no predictor in parts: ${(error as Error).message}`, { peer })
      return undefined
    }
  }

  async #pull(peer: string): Promise<void> {
    const { signal, isWanted } = this.#options
    const { missing, manifest } = this.#partial as Partial
    let failures = 0
    const request = async () => {
      while (missing.size > 0 && failures < MAX_FAILURES && !signal.aborted && isWanted(manifest.updates)) {
        const index = this.#next(peer)
        if (index === undefined) {
          await Promise.race([...this.#inFlight, sleep(RETRY_MS)])
          continue
        }
        const attempt = this.#attempt(peer, index)
        this.#inFlight.add(attempt)
        const hasArrived = await attempt
        this.#inFlight.delete(attempt)
        failures = hasArrived ? 0 : failures + 1
        if (!hasArrived && missing.size > 0) await sleep(RETRY_MS, signal).catch(() => undefined)
      }
    }
    await Promise.all(Array.from({ length: REQUESTS }, request))
  }

  /** The part for which a peer is asked: one for which nobody is, or one that another peer does not deliver soon. */
  #next(peer: string): number | undefined {
    const { slowMs = 20_000 } = this.#options
    const now = performance.now()
    let late: number | undefined
    for (const index of (this.#partial as Partial).missing) {
      const asked = this.#asked.get(index)
      if (asked === undefined) return index
      if (asked.peer !== peer && now - asked.since > slowMs) late ??= index
    }
    return late
  }

  /** @returns whether the part has arrived */
  async #attempt(peer: string, index: number): Promise<boolean> {
    const { fetch, log } = this.#options
    const partial = this.#partial as Partial
    const { digest, hashes } = partial.manifest
    const name = `part ${index + 1} of ${hashes.length} of a predictor`
    this.#asked.set(index, { peer, since: performance.now() })
    try {
      const part = await this.#bounded(signal => fetch(peer, `part ${digest} ${index}`, signal), PART_MS)
      if ((await hashOf(part)) !== hashes[index]) throw new Error('it is not the one of the manifest')
      put(partial, index, part)
      await this.#keep(String(index), part)
      log('debug', `${name} has arrived`, { peer })
      if (partial.missing.size === 0) this.#end.abort()
      return true
    } catch (error) {
      if (partial.missing.has(index)) log('debug', `${name} has not arrived: ${(error as Error).message}`, { peer })
      return false
    } finally {
      if (this.#asked.get(index)?.peer === peer) this.#asked.delete(index)
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

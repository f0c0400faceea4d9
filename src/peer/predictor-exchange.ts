/**
 * Exchange of whole predictors outside the tree: they are announced by gossip, and fetched if the tree does not deliver them. Large ones
 * are downloaded in parts.
 */
import type { EventEmitter } from 'node:events'
import { compareIds, decodeHead, encodeHead, type PredictorId } from '../admb/index.js'
import { decodeReferral, encodeReferral, type Log, type Network } from '../network/index.js'
import type { Store } from '../storage/index.js'
import type { Edges } from './edges.js'
import type { LearnerHandle } from './learner-handle.js'
import { PredictorDownload } from './predictor-download.js'
import { PartServer } from './predictor-parts.js'

interface ExchangeOptions {
  readonly network: Network
  readonly edges: Edges
  readonly learner: Pick<LearnerHandle, 'post' | 'parts'>
  /** Keeps what was downloaded for a later run. */
  readonly store: Store | undefined
  /** Resolves when all records of the journal so far are durable. */
  readonly durable: () => Promise<void>
  /** The current predictor, encoded. */
  readonly save: () => Promise<Uint8Array>
  /** Id of the predictor that the learner holds. */
  readonly current: () => PredictorId
  /** Emits `status` after each status of the learner. */
  readonly statuses: EventEmitter
  readonly log: Log
}

/** Announces, fetches and serves predictors. `stop` aborts a fetch in progress. */
export class PredictorExchange {
  readonly #options: ExchangeOptions
  readonly #fetching = new AbortController()
  readonly #server: PartServer
  readonly #download: PredictorDownload
  #downloading: Promise<boolean> | undefined
  /** Addresses of peers that others have named. */
  readonly #named = new Map<string, readonly string[]>()

  constructor(options: ExchangeOptions) {
    this.#options = options
    const { network, learner, durable, store, current, statuses, log } = options
    const { signal } = this.#fetching
    this.#server = new PartServer({
      encode: async (query, held) => {
        const parts = await learner.parts(query, held)
        await durable()
        return parts
      },
      ended: () => learner.post({ kind: 'served' })
    })
    this.#download = new PredictorDownload({
      fetch: (from, request, bounded) => this.#ask(from, request, bounded),
      holders: (from, bounded) => this.#holders(from, bounded),
      isWanted: updates => updates >= current().updates,
      store,
      maxBytes: network.maxFrameBytes,
      signal,
      log
    })
    statuses.on('status', () => void this.#download.tidy())
  }

  announce(id: PredictorId): void {
    const { network } = this.#options
    network.publish('head', encodeHead({ id, addresses: network.addresses }))
  }

  /** @throws FrameError if the announcement is malformed */
  receiveHead(from: string, bytes: Uint8Array): void {
    const { id, addresses } = decodeHead(bytes)
    this.#options.edges.candidate({ id: from, addresses })
    this.#options.learner.post({ kind: 'announced', predictor: id, from })
  }

  /** Fetches a predictor, or a better one, from a tree neighbour if one holds it, otherwise from `maker`. */
  async fetch(id: PredictorId, maker: string, isLarge: boolean): Promise<void> {
    const { edges, learner, current, statuses } = this.#options
    const { signal } = this.#fetching
    try {
      // A frame that is being received may contain it; the next status shows this.
      await edges.arrived()
      await next(statuses, 'status', signal)
      for (const from of new Set([...edges.neighbours, maker])) {
        if (compareIds(id, current()) <= 0) break
        if (isLarge && (await this.download(id, from))) break
        if (await this.#fetchFrom(from, id)) break
      }
    } catch (error) {
      if (!signal.aborted) throw error
    }
    learner.post({ kind: 'fetch-ended' })
  }

  /** Downloads a predictor, or a better one, in parts from a peer and from others that hold it. @returns whether it has arrived */
  download({ updates }: PredictorId, from: string): Promise<boolean> {
    const { edges, network, learner, current, log } = this.#options
    // Steps follow from one that is older than the announced one.
    const least = Math.min(updates, current().updates + 1)
    const candidates = new Set([from, ...edges.neighbours, ...network.peers.map(({ id }) => id)])
    const run = async () => {
      const predictor = await this.#download.get(least, [...candidates]).catch((error: Error) => {
        log('warn', `downloading a predictor failed: ${error.message}`, { peer: from })
        return undefined
      })
      const transfer = predictor ? [predictor.body.buffer] : []
      learner.post({ kind: 'downloaded', predictor, from: predictor?.from ?? from }, transfer)
      this.#downloading = undefined
      return predictor !== undefined
    }
    this.#downloading ??= run()
    return this.#downloading
  }

  /**
   * Answers `predictor` and `predictor N` with the current predictor, unless it has less than N updates, requests for parts of a large one,
   * and `holders` with other peers that may have these parts.
   */
  async answer(request: Uint8Array): Promise<Uint8Array | undefined> {
    const { current, save, network, edges } = this.#options
    const text = new TextDecoder().decode(request)
    const [what, least = '0'] = text.split(' ')
    if (what === 'holders') {
      const { neighbours } = edges
      return encodeReferral(network.peers.filter(({ id }) => neighbours.includes(id)))
    }
    if (what !== 'predictor') return this.#server.answer(text)
    return current().updates >= Number(least) ? save() : undefined
  }

  /** Resolves when nothing is written to the store any more. */
  async stop(): Promise<void> {
    this.#fetching.abort(new Error('this peer stops'))
    this.#server.stop()
    await this.#downloading
  }

  /** @throws NetworkError if the peer does not name any */
  async #holders(from: string, bounded: AbortSignal): Promise<string[]> {
    const contacts = decodeReferral(await this.#ask(from, 'holders', bounded)).filter(
      ({ id }) => id !== this.#options.network.id
    )
    this.#named.clear()
    for (const { id, addresses } of contacts) this.#named.set(id, addresses)
    return contacts.map(({ id }) => id)
  }

  #ask(from: string, request: string, signal = this.#fetching.signal): Promise<Uint8Array> {
    const { network } = this.#options
    const addresses = this.#named.get(from) ?? []
    const target = network.peers.find(peer => peer.id === from) ?? { id: from, addresses }
    return network.fetch(target, new TextEncoder().encode(request), signal)
  }

  async #fetchFrom(from: string, { updates }: PredictorId): Promise<boolean> {
    const { learner, log } = this.#options
    try {
      const bytes = await this.#ask(from, `predictor ${updates}`)
      log('debug', `fetched the predictor with ${updates} updates or a better one`, { peer: from })
      learner.post({ kind: 'fetched', bytes, from }, [bytes.buffer as ArrayBuffer])
      return true
    } catch (error) {
      const reason = `fetching the predictor with ${updates} updates failed: ${(error as Error).message}`
      log('debug', reason, { peer: from })
      return false
    }
  }
}

/** Waits for an event. @throws the signal's reason */
function next(events: EventEmitter, type: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      events.off(type, arrived)
      reject(signal.reason)
    }
    const arrived = () => {
      signal.removeEventListener('abort', stop)
      resolve()
    }
    if (signal.aborted) return reject(signal.reason)
    events.once(type, arrived)
    signal.addEventListener('abort', stop, { once: true })
  })
}

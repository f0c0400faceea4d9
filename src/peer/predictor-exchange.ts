/** Exchange of whole predictors outside the tree: they are announced by gossip, and fetched if the tree does not deliver them. */
import type { EventEmitter } from 'node:events'
import { compareIds, decodeHead, encodeHead, type PredictorId } from '../admb/index.js'
import type { Log, Network } from '../network/index.js'
import type { Edges } from './edges.js'
import type { LearnerHandle } from './learner-handle.js'

interface ExchangeOptions {
  readonly network: Network
  readonly edges: Edges
  readonly learner: Pick<LearnerHandle, 'post'>
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

  constructor(options: ExchangeOptions) {
    this.#options = options
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
  async fetch(id: PredictorId, maker: string): Promise<void> {
    const { edges, learner, current, statuses } = this.#options
    const { signal } = this.#fetching
    try {
      // A frame that is being received may contain it; the next status shows this.
      await edges.arrived()
      await next(statuses, 'status', signal)
      for (const from of new Set([...edges.neighbours, maker])) {
        if (compareIds(id, current()) <= 0) break
        if (await this.#fetchFrom(from, id)) break
      }
    } catch (error) {
      if (!signal.aborted) throw error
    }
    learner.post({ kind: 'fetch-ended' })
  }

  /** Answers `predictor` and `predictor N` with the current predictor, unless it has less than N updates. */
  async answer(request: Uint8Array): Promise<Uint8Array | undefined> {
    const { current, save } = this.#options
    const [what, least = '0'] = new TextDecoder().decode(request).split(' ')
    return what === 'predictor' && current().updates >= Number(least) ? save() : undefined
  }

  stop(): void {
    this.#fetching.abort(new Error('this peer stops'))
  }

  async #fetchFrom(from: string, { updates }: PredictorId): Promise<boolean> {
    const { network, learner, log } = this.#options
    const target = network.peers.find(peer => peer.id === from) ?? { id: from, addresses: [] }
    try {
      const request = new TextEncoder().encode(`predictor ${updates}`)
      const bytes = await network.fetch(target, request, this.#fetching.signal)
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

/** The main thread's handle of the learner thread: typed messages, requests as promises, and an orderly stop. */
import { startLearner } from '#runtime'
import type { PredictorId } from '../admb/index.js'
import type { WorkerInit } from '../l2l/index.js'
import type { InputAnswer } from './answers.js'
import type { Download } from './downloads.js'
import { LearnerFailedError, PartlyLearnedError, PrivacySpentError, RequestError, UnavailableError } from './errors.js'
import type { PartsQuery } from './predictor-parts.js'
import type {
  FromLearner,
  InputRequest,
  LearnerStatus,
  RequestName,
  Requests,
  ThreadInit,
  ToLearner,
  ToPeer
} from './thread-messages.js'
import type { ThreadPort } from './thread-port.js'

/** Limit of requests that wait for the learner. Further requests are rejected. */
const MAX_PENDING = 256

/** Limit of downloads in progress, each of which keeps a predictor. */
const MAX_DOWNLOADS = 16

/** A learner that is busy answers all of them in one pause. */
const PIECES_AHEAD = 4

type Pending = { resolve(value: never): void; reject(error: Error): void }

export class LearnerHandle {
  /** Resolves with the thread's first status, after it has restored its state and opened its stream. */
  readonly ready: Promise<LearnerStatus>
  readonly #port: ThreadPort<ToLearner, FromLearner>
  readonly #pending = new Map<number, Pending>()
  readonly #stopped: Promise<void>
  /** Messages received before `listen`. */
  readonly #unhandled: ToPeer[] = []
  #onMessage: (message: ToPeer) => void = message => this.#unhandled.push(message)
  #onFailure: ((error: Error) => void) | undefined
  #failure: Error | undefined
  #nextRequest = 0
  /** Number of downloads in progress. */
  #downloads = 0
  #ended = false
  #isListening = false

  /** Called when the thread has prepared for a device worker. */
  onDevice: (device: number, init: WorkerInit | undefined) => void = () => undefined

  /** @param readBlock reads a block of the stored predictor */
  constructor(init: ThreadInit, readBlock: (index: number) => Promise<Uint8Array>) {
    const port = startLearner(init)
    this.#port = port
    let starting = { resolve: (_status: LearnerStatus) => {}, reject: (_error: Error) => {} }
    this.ready = new Promise((resolve, reject) => {
      starting = { resolve, reject }
    })
    this.#stopped = new Promise(resolve => {
      const end = (error?: Error) => {
        if (this.#ended) return
        this.#ended = true
        port.close()
        const reason = error ?? new UnavailableError('the peer is stopping')
        starting.reject(reason)
        for (const { reject } of this.#pending.values()) reject(reason)
        this.#pending.clear()
        resolve()
        this.#failure = error
        if (error) this.#onFailure?.(error)
      }
      port.onMessage(message => {
        if (message.kind === 'stopped') end()
        else if (message.kind === 'failed') end(new LearnerFailedError(message))
        else if (message.kind === 'device') this.onDevice(message.device, message.init)
        else if (message.kind === 'get-stored-block') {
          readBlock(message.index).then(
            bytes => port.post({ kind: 'stored-block', bytes }, [bytes.buffer as ArrayBuffer]),
            (error: Error) => {
              end(error)
              port.post({ kind: 'stop', stores: false })
            }
          )
        } else if ('id' in message) this.#settle(message)
        else {
          if (message.kind === 'status') starting.resolve(message.status)
          this.#onMessage(message)
        }
      })
      port.onFailure(reason => end(reason instanceof Error ? reason : new LearnerFailedError({ reason })))
    })
  }

  /**
   * @param onMessage called with every message that is not the answer to a request
   * @param onFailure called once if the thread ends unexpectedly
   */
  listen(onMessage: (message: ToPeer) => void, onFailure: (error: Error) => void): void {
    for (const message of this.#unhandled.splice(0)) onMessage(message)
    this.#isListening = true
    this.#onMessage = onMessage
    this.#onFailure = onFailure
    if (this.#failure) onFailure(this.#failure)
  }

  /** @param transfer buffers whose ownership moves to the thread */
  post(message: ToLearner, transfer: readonly ArrayBuffer[] = []): void {
    if (!this.#ended) this.#port.post(message, transfer)
  }

  /** @throws RequestError for invalid inputs, UnavailableError if too many requests are waiting */
  request(request: InputRequest): Promise<InputAnswer> {
    return this.#send('inputs', request)
  }

  /** The current predictor, encoded for `decodeSaved`. */
  save(): Promise<Uint8Array> {
    return this.#send('save', {})
  }

  /** The current predictor for peers that download it; see `PartServer`. */
  parts(query: PartsQuery, held: PredictorId | undefined): Promise<Requests['parts']['result']> {
    return this.#send('parts', { query, held })
  }

  /** The predictor that serves predictions, as a safetensors file. @throws UnavailableError if too many downloads are in progress */
  async download(): Promise<Download> {
    if (this.#downloads >= MAX_DOWNLOADS)
      throw new UnavailableError(`${MAX_DOWNLOADS} downloads are in progress: try again later`)
    this.#downloads++
    let isOpen = true
    const end = (download?: number) => {
      if (!isOpen) return
      isOpen = false
      this.#downloads--
      if (download !== undefined) this.post({ kind: 'end-download', download })
    }
    try {
      const started = await this.#send('download', {})
      const { download, file, bytes, etag } = started
      const cancel = () => end(download)
      return { file, bytes, etag, chunks: this.#piecesOf(download, cancel), cancel }
    } catch (error) {
      end()
      throw error
    }
  }

  /** @param ended called when no more of them will be read. A generator would not notice that before its first piece. */
  #piecesOf(download: number, ended: () => void): AsyncIterable<Uint8Array> {
    const ahead: Promise<Uint8Array | undefined>[] = []
    const request = () => {
      const piece = this.#send('piece', { download })
      // It is thrown when the piece is awaited.
      piece.catch(() => undefined)
      return piece
    }
    const done = () => {
      ended()
      return { done: true, value: undefined } as const
    }
    const iterator: AsyncIterator<Uint8Array> = {
      next: async () => {
        while (ahead.length < PIECES_AHEAD) ahead.push(request())
        try {
          const value = await ahead.shift()
          return value === undefined ? done() : { value }
        } catch (error) {
          ended()
          throw error
        }
      },
      return: async () => done()
    }
    return { [Symbol.asyncIterator]: () => iterator }
  }

  /** A block of a checkpoint that is being stored. */
  checkpointBlock(checkpoint: number, index: number): Promise<Uint8Array> {
    return this.#send('block', { checkpoint, index }, Number.POSITIVE_INFINITY)
  }

  /** Stops the thread after a last checkpoint has been stored, if messages are listened to. */
  async stop(): Promise<void> {
    this.post({ kind: 'stop', stores: this.#isListening })
    await this.#stopped
  }

  #send<Name extends RequestName>(
    name: Name,
    given: Requests[Name]['given'],
    most = MAX_PENDING
  ): Promise<Requests[Name]['result']> {
    if (this.#ended) return Promise.reject(new UnavailableError('the peer is stopping'))
    if (this.#pending.size >= most) {
      return Promise.reject(
        new UnavailableError('too many requests are waiting for the learner: try again in a moment')
      )
    }
    const id = this.#nextRequest++
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject })
      this.post({ kind: 'request', id, name, given })
    })
  }

  /** Resolves or rejects a request. */
  #settle(message: Extract<FromLearner, { id: number }>): void {
    const pending = this.#pending.get(message.id)
    this.#pending.delete(message.id)
    if (message.kind === 'answer') pending?.resolve(message.result as never)
    else if (message.kind === 'failed-request') {
      const isSpent = message.code === PrivacySpentError.code
      pending?.reject(isSpent ? new PrivacySpentError() : new RequestError(message.reason))
    } else if (message.learned === undefined) pending?.reject(new UnavailableError('the peer is stopping'))
    else pending?.reject(new PartlyLearnedError(message.learned))
  }
}

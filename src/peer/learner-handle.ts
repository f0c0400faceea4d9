/** The main thread's handle of the learner thread: typed messages, requests as promises, and an orderly stop. */

import { Worker } from 'node:worker_threads'
import { CodedError } from '../base/errors.js'
import type {
  FromLearner,
  InputAnswer,
  InputRequest,
  LearnerInit,
  LearnerStatus,
  Serving,
  ToLearner
} from './thread-messages.js'

/** Limit of requests that wait for the learner. Further requests are rejected. */
const MAX_PENDING = 256

/** The learner thread failed, because of its data, its model or a bug. */
export class LearnerFailedError extends CodedError {
  static override readonly code: string = 'ERR_LEARNER_FAILED'
  /** Code of the error in the thread, if it has one. */
  override readonly code: string

  constructor({ reason, name, code }: { readonly reason: string; readonly name?: string; readonly code?: string }) {
    super(reason)
    this.name = name ?? 'LearnerFailedError'
    this.code = code ?? LearnerFailedError.code
  }
}

/** The inputs of a request are malformed or do not fit the model. */
export class RequestError extends CodedError {
  static override readonly code = 'ERR_REQUEST'
}

/** A request cannot be served now: too many requests are waiting, or the peer is stopping. */
export class UnavailableError extends CodedError {
  static override readonly code = 'ERR_UNAVAILABLE'
}

type Pending = { resolve(value: never): void; reject(error: Error): void }

export class LearnerHandle {
  /** Resolves with the thread's first status, after it has restored its state and opened its stream. */
  readonly ready: Promise<LearnerStatus>
  readonly #worker: Worker
  readonly #pending = new Map<number, Pending>()
  readonly #stopped: Promise<void>
  /** Messages received before `listen`. */
  readonly #unhandled: FromLearner[] = []
  #onMessage: (message: FromLearner) => void = message => this.#unhandled.push(message)
  #onFailure: ((error: Error) => void) | undefined
  #failure: Error | undefined
  #nextRequest = 0
  #ended = false

  constructor(init: LearnerInit) {
    const readsStdin = init.stream?.data === '-'
    const worker = new Worker(new URL('./learner-thread.js', import.meta.url), { workerData: init, stdin: readsStdin })
    this.#worker = worker
    const input = worker.stdin
    if (input) process.stdin.pipe(input)
    let starting = { resolve: (_status: LearnerStatus) => {}, reject: (_error: Error) => {} }
    this.ready = new Promise((resolve, reject) => {
      starting = { resolve, reject }
    })
    this.#stopped = new Promise(resolve => {
      const end = (error?: Error) => {
        if (this.#ended) return
        this.#ended = true
        if (input) {
          process.stdin.unpipe(input)
          process.stdin.pause()
        }
        const reason = error ?? new UnavailableError('the peer is stopping')
        starting.reject(reason)
        for (const { reject } of this.#pending.values()) reject(reason)
        this.#pending.clear()
        resolve()
        this.#failure = error
        if (error) this.#onFailure?.(error)
      }
      worker.on('message', (message: FromLearner) => {
        if (message.kind === 'stopped') end()
        else if (message.kind === 'failed') end(new LearnerFailedError(message))
        else if (!this.#resolve(message)) {
          if (message.kind === 'status') starting.resolve(message.status)
          this.#onMessage(message)
        }
      })
      worker.on('error', error => end(error as Error))
      worker.on('exit', code => end(new LearnerFailedError({ reason: `the learner thread ended with code ${code}` })))
    })
  }

  /**
   * @param onMessage called with every message that is not the answer to a request
   * @param onFailure called once if the thread ends unexpectedly
   */
  listen(onMessage: (message: FromLearner) => void, onFailure: (error: Error) => void): void {
    for (const message of this.#unhandled.splice(0)) onMessage(message)
    this.#onMessage = onMessage
    this.#onFailure = onFailure
    if (this.#failure) onFailure(this.#failure)
  }

  /** @param transfer buffers whose ownership moves to the thread */
  post(message: ToLearner, transfer: readonly ArrayBuffer[] = []): void {
    if (!this.#ended) this.#worker.postMessage(message, transfer)
  }

  /** @throws RequestError for invalid inputs, UnavailableError if too many requests are waiting */
  request(request: InputRequest): Promise<InputAnswer> {
    return this.#send(id => ({ kind: 'request', id, ...request }))
  }

  /** The current predictor, encoded for `decodeSaved`. */
  save(): Promise<Uint8Array> {
    return this.#send(id => ({ kind: 'save', id }))
  }

  /** The predictor that serves predictions. */
  serving(): Promise<Serving> {
    return this.#send(id => ({ kind: 'get-serving', id }))
  }

  /** Stops the thread after it has posted a last checkpoint. */
  async stop(): Promise<void> {
    this.post({ kind: 'stop' })
    await this.#stopped
  }

  #send<T>(message: (id: number) => ToLearner): Promise<T> {
    if (this.#ended) return Promise.reject(new UnavailableError('the peer is stopping'))
    if (this.#pending.size >= MAX_PENDING) {
      return Promise.reject(
        new UnavailableError('too many requests are waiting for the learner: try again in a moment')
      )
    }
    const id = this.#nextRequest++
    return new Promise<T>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject })
      this.post(message(id))
    })
  }

  /** Resolves or rejects the request that the message answers. @returns false if the message is not an answer */
  #resolve(message: FromLearner): boolean {
    if (!('id' in message)) return false
    const pending = this.#pending.get(message.id)
    this.#pending.delete(message.id)
    if (message.kind === 'failed-request') pending?.reject(new RequestError(message.reason))
    else pending?.resolve(contentOf(message) as never)
    return true
  }
}

function contentOf(message: Exclude<Extract<FromLearner, { id: number }>, { kind: 'failed-request' }>): unknown {
  switch (message.kind) {
    case 'answer':
      return message.answer
    case 'saved':
      return message.bytes
    case 'serving':
      return message
    default:
      return message satisfies never
  }
}

/** The learner thread as the main thread sees it: typed messages, answers as promises, one way to stop. */

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

/** Requests that wait for the learner at the same time; more are refused. */
const MAX_PENDING = 256

/** The learner thread ended by itself: its data, its model or its program is at fault. */
export class LearnerFailedError extends CodedError {
  static override readonly code: string = 'ERR_LEARNER_FAILED'
  /** The code of the error in the thread, if it has one. */
  override readonly code: string

  constructor({ reason, name, code }: { readonly reason: string; readonly name?: string; readonly code?: string }) {
    super(reason)
    this.name = name ?? 'LearnerFailedError'
    this.code = code ?? LearnerFailedError.code
  }
}

/** A request that makes no sense to the learner: bad input. */
export class RequestError extends CodedError {
  static override readonly code = 'ERR_REQUEST'
}

/** A request came at a bad time: too many wait, or the peer stops. */
export class UnavailableError extends CodedError {
  static override readonly code = 'ERR_UNAVAILABLE'
}

type Pending = { resolve(value: never): void; reject(error: Error): void }

export class LearnerHandle {
  /** Resolves with the thread's first status, when it has taken up what was stored and found its stream. */
  readonly ready: Promise<LearnerStatus>
  readonly #worker: Worker
  readonly #pending = new Map<number, Pending>()
  readonly #stopped: Promise<void>
  /** What came before anybody listened. */
  readonly #early: FromLearner[] = []
  #onMessage: (message: FromLearner) => void = message => this.#early.push(message)
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
        const reason = error ?? new UnavailableError('the peer stops')
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
        else if (!this.#settled(message)) {
          if (message.kind === 'status') starting.resolve(message.status)
          this.#onMessage(message)
        }
      })
      worker.on('error', error => end(error as Error))
      worker.on('exit', code => end(new LearnerFailedError({ reason: `the learner thread ended with code ${code}` })))
    })
  }

  /**
   * @param onMessage called with whatever is not an answer
   * @param onFailure called once if the thread ends without having been asked to
   */
  listen(onMessage: (message: FromLearner) => void, onFailure: (error: Error) => void): void {
    for (const message of this.#early.splice(0)) onMessage(message)
    this.#onMessage = onMessage
    this.#onFailure = onFailure
    if (this.#failure) onFailure(this.#failure)
  }

  /** @param transfer buffers that move to the thread */
  post(message: ToLearner, transfer: readonly ArrayBuffer[] = []): void {
    if (!this.#ended) this.#worker.postMessage(message, transfer)
  }

  /** @throws RequestError for bad input, UnavailableError when too many requests wait */
  request(request: InputRequest): Promise<InputAnswer> {
    return this.#ask(id => ({ kind: 'request', id, ...request }))
  }

  /** The predictor held now, as stand-alone bytes. */
  save(): Promise<Uint8Array> {
    return this.#ask(id => ({ kind: 'save', id }))
  }

  /** The predictor that serves predictions. */
  serving(): Promise<Serving> {
    return this.#ask(id => ({ kind: 'serve', id }))
  }

  /** Lets the thread store its state and end. */
  async stop(): Promise<void> {
    this.post({ kind: 'stop' })
    await this.#stopped
  }

  #ask<T>(message: (id: number) => ToLearner): Promise<T> {
    if (this.#ended) return Promise.reject(new UnavailableError('the peer stops'))
    if (this.#pending.size >= MAX_PENDING) {
      return Promise.reject(new UnavailableError('too many requests wait for the learner: try again in a moment'))
    }
    const id = this.#nextRequest++
    return new Promise<T>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject })
      this.post(message(id))
    })
  }

  /** Whether the message was the answer to a request. */
  #settled(message: FromLearner): boolean {
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
    case 'served':
      return message
    default:
      return message satisfies never
  }
}

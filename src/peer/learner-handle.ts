/** The learner thread as the main thread sees it: typed messages, answers as promises, one way to stop. */
import { Worker } from 'node:worker_threads'
import type { FromLearner, InputAnswer, InputRequest, LearnerInit, ToLearner } from './thread-messages.js'

/** Requests that wait for the learner at the same time; more are refused. */
const MAX_PENDING = 256

/** The learner thread ended by itself: its data, its model or its program is at fault. */
export class LearnerFailedError extends Error {
  override readonly name = 'LearnerFailedError'
  constructor(
    reason: string,
    readonly code = 'ERR_LEARNER_FAILED'
  ) {
    super(reason)
  }
}

/** A request that the learner could not take: bad input, or too many at once. */
export class RequestError extends Error {
  static readonly code = 'ERR_REQUEST'
  readonly code = RequestError.code
  override readonly name = 'RequestError'
}

type Pending = { resolve(value: never): void; reject(error: Error): void }

export class LearnerHandle {
  readonly #worker: Worker
  readonly #pending = new Map<number, Pending>()
  readonly #stopped: Promise<void>
  #nextRequest = 0
  #ended = false

  /**
   * @param onMessage called with whatever is not an answer
   * @param onFailure called once if the thread ends without having been asked to
   */
  constructor(init: LearnerInit, onMessage: (message: FromLearner) => void, onFailure: (error: Error) => void) {
    this.#worker = new Worker(new URL('./learner-thread.js', import.meta.url), { workerData: init })
    this.#stopped = new Promise(resolve => {
      const end = (error?: Error) => {
        if (this.#ended) return
        this.#ended = true
        for (const { reject } of this.#pending.values()) reject(error ?? new RequestError('the peer stops'))
        this.#pending.clear()
        resolve()
        if (error) onFailure(error)
      }
      this.#worker.on('message', (message: FromLearner) => {
        if (message.kind === 'stopped') end()
        else if (message.kind === 'failed') end(new LearnerFailedError(message.reason, message.code))
        else if (!this.#settled(message)) onMessage(message)
      })
      this.#worker.on('error', error => end(error as Error))
      this.#worker.on('exit', code => end(new LearnerFailedError(`the learner thread ended with code ${code}`)))
    })
  }

  /** @param transfer buffers that move to the thread */
  post(message: ToLearner, transfer: readonly ArrayBuffer[] = []): void {
    if (!this.#ended) this.#worker.postMessage(message, transfer)
  }

  /** @throws RequestError for bad input, or when too many requests wait */
  request(request: InputRequest): Promise<InputAnswer> {
    return this.#ask(id => ({ kind: 'request', id, ...request }))
  }

  /** The predictor held now, as stand-alone bytes. */
  save(): Promise<Uint8Array> {
    return this.#ask(id => ({ kind: 'save', id }))
  }

  /** Lets the thread store its state and end. */
  async stop(): Promise<void> {
    this.post({ kind: 'stop' })
    await this.#stopped
  }

  #ask<T>(message: (id: number) => ToLearner): Promise<T> {
    if (this.#ended) return Promise.reject(new RequestError('the peer stops'))
    if (this.#pending.size >= MAX_PENDING) {
      return Promise.reject(new RequestError('too many requests wait for the learner: try again in a moment'))
    }
    const id = this.#nextRequest++
    return new Promise<T>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject })
      this.post(message(id))
    })
  }

  /** Whether the message was the answer to a request. */
  #settled(message: FromLearner): boolean {
    if (message.kind !== 'answer' && message.kind !== 'failed-request' && message.kind !== 'saved') return false
    const pending = this.#pending.get(message.id)
    this.#pending.delete(message.id)
    if (message.kind === 'failed-request') pending?.reject(new RequestError(message.reason))
    else pending?.resolve((message.kind === 'saved' ? message.bytes : message.answer) as never)
    return true
  }
}

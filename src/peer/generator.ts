/** Text from the serving predictor of a peer with a language model, generated in a thread that starts with the first request. */
import { Worker } from 'node:worker_threads'
import type { PredictorId } from '../admb/index.js'
import type { Execution, NetworkSpec, Sampling } from '../l2l/index.js'
import type { Blocks } from '../learner/index.js'
import { RequestError, UnavailableError } from './errors.js'
import type { PeerOptions } from './options.js'
import type { Serving } from './thread-messages.js'

/** Limit of texts that are being generated or queued. */
const MAX_TEXTS = 8

/** What is continued, and how tokens are drawn. */
export interface GenerateRequest extends Sampling {
  readonly prompt: string
  /** Largest number of tokens. @default 100 */
  readonly tokens?: number
}

/** A token, and the text that it completes; empty in the middle of a character. */
export interface TextPiece {
  readonly token: number
  readonly text: string
}

/** The end of a text. */
export interface GeneratedText {
  /** Without the prompt. */
  readonly text: string
  readonly tokens: number
  /** Why it ended: as many tokens as were asked for, or no further positions of the model. */
  readonly finish: 'tokens' | 'positions'
  readonly predictor: PredictorId
}

export interface GeneratorInit {
  readonly network: NetworkSpec
  readonly execution: Execution
  readonly plugins: readonly string[]
}

export type ToGenerator =
  | {
      readonly kind: 'generate'
      readonly id: number
      readonly request: GenerateRequest
      /** Undefined if they are those of the last request. */
      readonly blocks: Blocks | undefined
      readonly updates: number
    }
  | { readonly kind: 'cancel'; readonly id: number }

export type FromGenerator =
  | { readonly kind: 'piece'; readonly id: number; readonly piece: TextPiece }
  | { readonly kind: 'ended'; readonly id: number; readonly end: Omit<GeneratedText, 'predictor'> }
  | { readonly kind: 'failed'; readonly id: number; readonly reason: string }

interface PredictorSource {
  /** Of the newest status. */
  current(): PredictorId
  /** A copy of the predictor that serves predictions. */
  serving(): Promise<Serving>
}

interface Text {
  readonly predictor: PredictorId
  onPiece(piece: TextPiece): void
  resolve(text: GeneratedText): void
  reject(error: Error): void
}

export class Generator {
  readonly #options: Pick<PeerOptions, 'spec' | 'execution' | 'plugins'>
  readonly #predictor: PredictorSource
  readonly #texts = new Map<number, Text>()
  #worker: Worker | undefined
  /** The predictor that the thread holds. */
  #held: PredictorId | undefined
  #next = 0
  #waiting = 0

  constructor(options: Pick<PeerOptions, 'spec' | 'execution' | 'plugins'>, predictor: PredictorSource) {
    this.#options = options
    this.#predictor = predictor
  }

  /**
   * @param onPiece called with each token
   * @param signal ends the text early; what was made until then is returned
   * @throws RequestError if the model is not a language model, or the prompt is too long; UnavailableError if too many texts are queued
   */
  async generate(
    request: GenerateRequest,
    onPiece: (piece: TextPiece) => void,
    signal?: AbortSignal
  ): Promise<GeneratedText> {
    const { network, model } = this.#options.spec
    if (network?.target.kind !== 'next-token' || network.text === undefined) {
      const name = network?.layers.model ?? model
      throw new RequestError(`the model ${name} does not generate text: start peers with a language model`)
    }
    if (this.#waiting >= MAX_TEXTS)
      throw new UnavailableError(`${MAX_TEXTS} texts are being generated or queued: try again later`)
    this.#waiting++
    let cancel: (() => void) | undefined
    try {
      // A copy of the weights is made only if they have changed.
      const isHeld = this.#held !== undefined && this.#held.digest === this.#predictor.current().digest
      const { predictor, blocks } = isHeld
        ? { predictor: this.#held as PredictorId, blocks: undefined }
        : await this.#predictor.serving()
      const worker = this.#worker ?? this.#start({ network, execution: this.#options.execution ?? {} })
      const id = this.#next++
      this.#held = predictor
      return await new Promise<GeneratedText>((resolve, reject) => {
        this.#texts.set(id, { predictor, onPiece, resolve, reject })
        const { updates } = predictor
        worker.postMessage({ kind: 'generate', id, request, blocks, updates } satisfies ToGenerator)
        cancel = () => worker.postMessage({ kind: 'cancel', id } satisfies ToGenerator)
        if (signal?.aborted) cancel()
        else signal?.addEventListener('abort', cancel, { once: true })
      })
    } finally {
      if (cancel) signal?.removeEventListener('abort', cancel)
      this.#waiting--
    }
  }

  async stop(): Promise<void> {
    await this.#worker?.terminate()
  }

  #start(init: Omit<GeneratorInit, 'plugins'>): Worker {
    const data: GeneratorInit = { ...init, plugins: this.#options.plugins ?? [] }
    const worker = new Worker(new URL('./generator-thread.js', import.meta.url), { workerData: data })
    this.#worker = worker
    worker.on('message', (message: FromGenerator) => this.#receive(message))
    const end = (reason: string) => {
      this.#worker = undefined
      this.#held = undefined
      for (const { reject } of this.#texts.values()) reject(new UnavailableError(reason))
      this.#texts.clear()
    }
    worker.on('error', error => end(`the text could not be generated: ${(error as Error).message}`))
    worker.on('exit', () => end('the peer is stopping'))
    return worker
  }

  #receive(message: FromGenerator): void {
    const text = this.#texts.get(message.id)
    if (message.kind === 'piece') {
      text?.onPiece(message.piece)
      return
    }
    this.#texts.delete(message.id)
    if (message.kind === 'failed') text?.reject(new RequestError(message.reason))
    else text?.resolve({ ...message.end, predictor: text.predictor })
  }
}

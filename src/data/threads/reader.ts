/**
 * The thread that reads a stream, as its owner sees it. This module imports little, so that a command can start the thread before the rest
 * of the command is loaded.
 */
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads'
import type { Rows } from '../rows.js'
import type { StreamOptions } from '../stream-options.js'
import {
  type BlockInfo,
  createRing,
  fromSent,
  type ReaderInit,
  type ReaderMessage,
  type ReaderRequest,
  RingReader,
  type StreamFacts
} from './ring.js'

/** Bytes of input from which on a thread pays for its start. */
const LEAST_BYTES = 32 * 1024 * 1024

/**
 * Starts a thread for a stream that is opened later, so that its start overlaps with other work.
 * @returns undefined if the input is no large file, or the machine has no second core
 */
export function startReader(options: Pick<StreamOptions, 'data' | 'passes'>): ReaderThread | undefined {
  const { data, passes = 1 } = options
  if (availableParallelism() < 2) return undefined
  try {
    const stats = statSync(data)
    return stats.isFile() && stats.size * passes >= LEAST_BYTES ? new ReaderThread() : undefined
  } catch {
    return undefined
  }
}

/** Callbacks of a stream. */
type Listeners = Pick<StreamOptions, 'onMalformed' | 'onNotice'>

/** A thread that reads one stream. It does not keep the process alive before the stream is opened. */
export class ReaderThread {
  facts: StreamFacts = {}
  info: BlockInfo = { skipped: 0, share: undefined }
  readonly #ring: RingReader
  readonly #port: MessagePort
  readonly #worker: Worker
  #listeners: Listeners = {}
  /** Ends the stream, after the rows before it. */
  #failure: Error | undefined
  /** A bug, or insufficient memory. */
  #crash: Error | undefined

  constructor() {
    const ring = createRing()
    const { port1, port2 } = new MessageChannel()
    const workerData: ReaderInit = { ring, port: port2 }
    this.#ring = new RingReader(ring)
    this.#port = port1
    this.#worker = new Worker(new URL('./reader-thread.js', import.meta.url), { workerData, transferList: [port2] })
    this.#worker.on('error', error => {
      this.#crash = error
      this.#ring.wake()
    })
    this.#worker.unref()
  }

  /** Resolves when the stream is open. @throws the errors of opening it */
  async open(options: StreamOptions, listeners: Listeners): Promise<void> {
    this.#worker.ref()
    this.#listeners = listeners
    const request: ReaderRequest = { options, reports: listeners.onMalformed !== undefined }
    this.#port.postMessage(request)
    try {
      await this.#next()
      this.#ring.release()
    } catch (error) {
      await this.stop()
      throw error
    }
  }

  async *rows(signal: AbortSignal | undefined): AsyncGenerator<Rows> {
    try {
      for (;;) {
        signal?.throwIfAborted()
        const block = await this.#next()
        if (block.size < 0) {
          await this.#end()
          return
        }
        const { newClasses } = this.facts
        yield { size: block.size, ...block.view, newClasses }
        this.#ring.release()
      }
    } finally {
      await this.stop()
    }
  }

  /** Waits for a block and receives what was sent before it. */
  async #next(): Promise<ReturnType<RingReader['take']>> {
    while (!this.#ring.isReady) {
      if (this.#crash !== undefined) throw this.#crash
      await this.#ring.wait()
    }
    const block = this.#ring.take()
    this.#receive()
    this.info = block.info
    if (block.size < 0 && this.#failure !== undefined) throw this.#failure
    // The slot's memory may have been replaced by one of the messages.
    return this.#ring.take()
  }

  #receive(): void {
    for (;;) {
      const received = receiveMessageOnPort(this.#port) as { readonly message: ReaderMessage } | undefined
      if (received === undefined) return
      const { message } = received
      if (message.kind === 'slot') this.#ring.replace(message.memory)
      else if (message.kind === 'facts') this.facts = message.facts
      else if (message.kind === 'malformed') this.#listeners.onMalformed?.(message.malformed)
      else if (message.kind === 'notice') this.#listeners.onNotice?.(message.notice, message.importance)
      else this.#failure = fromSent(message.error)
    }
  }

  /** Waits for the thread, which ends after its last block: what it does at its exit is not interrupted. */
  async #end(): Promise<void> {
    const exit = this.#crash === undefined && this.#worker.threadId > 0 ? once(this.#worker, 'exit') : undefined
    this.#ring.close()
    this.#port.close()
    await exit
  }

  async stop(): Promise<void> {
    this.#ring.close()
    this.#port.close()
    await this.#worker.terminate()
  }
}

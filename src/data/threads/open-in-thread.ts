/**
 * Opens a stream whose rows are read and parsed in a thread of their own, so that parsing and learning overlap. The rows, their
 * order and all errors are those of `openStream`.
 */
import { stat } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads'
import { isCustomFormat } from '../formats/custom.js'
import { openStream } from '../open.js'
import { Preparation } from '../prepare.js'
import type { Rows } from '../rows.js'
import type { StreamOptions } from '../stream-options.js'
import type { ExampleStream } from '../types.js'
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
export async function startReader(
  options: Pick<StreamOptions, 'data' | 'format' | 'tokens' | 'passes'>
): Promise<ReaderThread | undefined> {
  const { data, passes = 1 } = options
  if (!canMove(options) || availableParallelism() < 2) return undefined
  try {
    const stats = await stat(data)
    return stats.isFile() && stats.size * passes >= LEAST_BYTES ? new ReaderThread() : undefined
  } catch {
    return undefined
  }
}

/**
 * Reads in a thread of its own if the input is a large file and the machine has a second core; else like `openStream`.
 * @param started a thread that `startReader` has started for these options
 * @throws the errors of `openStream`, with their names and codes
 */
export async function openInThread(options: StreamOptions, started?: ReaderThread): Promise<ExampleStream> {
  if (!canMove(options)) await started?.stop()
  const thread = canMove(options) ? (started ?? (await startReader(options))) : undefined
  return thread === undefined ? openStream(options) : openThreaded(options, thread)
}

/** Readers of plug-ins, and rows of tokens, exist in this thread only. */
function canMove({ tokens, format }: Pick<StreamOptions, 'format' | 'tokens'>): boolean {
  return tokens === undefined && !isCustomFormat(format)
}

/** The same, always in a thread. @throws the errors of `openStream` */
export async function openThreaded(options: StreamOptions, thread = new ReaderThread()): Promise<ExampleStream> {
  const { scaling, onMalformed, onNotice, signal, ...plain } = options
  await thread.open({ ...plain, scaleLater: true }, { onMalformed, onNotice })
  let isIterated = false
  const stream = {
    get skipped() {
      return thread.info.skipped
    },
    get share() {
      return thread.info.share
    },
    [Symbol.asyncIterator]() {
      if (isIterated) throw new Error('a stream can be iterated only once: open another one')
      isIterated = true
      const rows = thread.rows(signal)
      const { schema, hashBits, scale = 'none' } = thread.facts
      const { constant = false, scaleLater } = options
      if (scaleLater) return rows
      return Preparation.for({ schema, hashBits, constant, scale }, scaling)?.rows(rows) ?? rows
    }
  }
  for (const key of Object.keys(thread.facts) as (keyof StreamFacts)[]) {
    Object.defineProperty(stream, key, { enumerable: true, get: () => thread.facts[key] })
  }
  return stream as unknown as ExampleStream
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
        if (block.size < 0) return
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

  async stop(): Promise<void> {
    this.#ring.close()
    this.#port.close()
    await this.#worker.terminate()
  }
}

/** A thread that reads or writes a layer file, as the executor's thread sees it. */
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads'
import { IoQueue } from './io-queue.js'
import type { IoFailure, IoThreadData } from './io-thread.js'

export class IoWorker {
  readonly queue = new IoQueue()
  readonly port: MessagePort
  #failure: IoFailure | undefined

  constructor(data: Omit<IoThreadData, 'queue' | 'port'>) {
    const { port1, port2 } = new MessageChannel()
    this.port = port1
    port1.unref()
    const workerData: IoThreadData = { ...data, queue: this.queue.shared, port: port2 }
    const worker = new Worker(new URL('./io-thread.js', import.meta.url), { workerData, transferList: [port2] })
    worker.unref()
  }

  /** Why it has failed; undefined if it has not. */
  get failure(): IoFailure | undefined {
    if (!this.queue.hasFailed) return undefined
    this.#failure ??= (receiveMessageOnPort(this.port) as { readonly message: IoFailure }).message
    return this.#failure
  }
}

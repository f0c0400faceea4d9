/** One worker thread as the pool's thread sees it: what it is told, what it answers, and its gradients in shared memory. */
import { once } from 'node:events'
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads'
import { DeviceError } from '../../device/errors.js'
import {
  gradientsCell,
  messagesCell,
  RING_SIZE,
  type SharedWeights,
  tasksCell,
  type WorkerInit,
  type WorkerMessage,
  type WorkerTask
} from './messages.js'

/** After so many milliseconds without a sign a worker is taken for dead. */
const TIMEOUT_MS = 120_000

export class WorkerHandle {
  /** Whether it was given a part of which nobody has heard the end. */
  isBusy = false

  private constructor(
    readonly number: number,
    /** Of the layers that it is done with, in the order of the step: the n-th is in place n mod MOST_AHEAD. */
    readonly gradients: readonly Float32Array[],
    private readonly cells: Int32Array,
    private readonly worker: Worker,
    private readonly port: MessagePort
  ) {}

  /** @throws DeviceError if its device does not start */
  static async start(given: Omit<WorkerInit, 'gradients' | 'port'>): Promise<WorkerHandle> {
    const { port1, port2 } = new MessageChannel()
    const gradients = allocateGradients(given.weights)
    const workerData: WorkerInit = { ...given, gradients, port: port2 }
    const worker = new Worker(new URL('./worker-thread.js', import.meta.url), { workerData, transferList: [port2] })
    await once(worker, 'message')
    worker.unref()
    return new WorkerHandle(given.worker, gradients, new Int32Array(given.cells), worker, port1)
  }

  /** @param ended is called when the thread is gone */
  onExit(ended: () => void): void {
    this.worker.on('error', ended)
    this.worker.on('exit', ended)
  }

  submit(task: WorkerTask): void {
    this.isBusy = true
    Atomics.store(this.cells, gradientsCell(this.number), 0)
    this.#send(task)
  }

  stop(): void {
    this.#send('stop')
  }

  terminate(): void {
    void this.worker.terminate()
  }

  /** Gradients that it has made in this step. */
  arrived(): number {
    return Atomics.load(this.cells, gradientsCell(this.number))
  }

  /** Waits until there are more gradients than so many. @returns the end of its part, if that came first */
  waitFor(count: number): WorkerMessage | undefined {
    return this.#waitUntil(() => this.arrived() > count)
  }

  /** Waits for the end of its part. */
  receive(): WorkerMessage {
    return this.#waitUntil(() => false) as WorkerMessage
  }

  #waitUntil(isSo: () => boolean): WorkerMessage | undefined {
    const cell = messagesCell(this.number)
    for (;;) {
      const seen = Atomics.load(this.cells, cell)
      if (isSo()) return undefined
      const received = receiveMessageOnPort(this.port)
      if (received !== undefined) return received.message as WorkerMessage
      if (Atomics.wait(this.cells, cell, seen, TIMEOUT_MS) === 'timed-out') {
        return { kind: 'failed', code: DeviceError.code, reason: `nothing was heard of it for ${TIMEOUT_MS / 1000} s` }
      }
    }
  }

  #send(message: WorkerTask | 'stop'): void {
    this.port.postMessage(message)
    Atomics.add(this.cells, tasksCell(this.number), 1)
    Atomics.notify(this.cells, tasksCell(this.number))
  }
}

/** Shared memory that fits any layer's gradients, as often as one may be ahead. The system gives it where it is written to. */
export function allocateGradients({ blocks }: SharedWeights): readonly Float32Array[] {
  const longest = blocks.reduce((most, { length }) => Math.max(most, length), 0)
  return Array.from({ length: RING_SIZE }, () => new Float32Array(new SharedArrayBuffer(4 * longest)))
}

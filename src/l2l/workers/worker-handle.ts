/**
 * The pool's handle of one worker thread: sends tasks, receives results, and gives access to its gradients in shared
 * memory.
 */
import { once } from 'node:events'
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads'
import { Inbox } from './inbox.js'
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

export class WorkerHandle {
  /** Whether a task was submitted whose result has not been received. */
  isBusy = false
  readonly #inbox: Inbox

  private constructor(
    readonly number: number,
    /** Ring of its gradients: see `Contributor`. */
    readonly gradients: readonly Float32Array[],
    private readonly cells: Int32Array,
    private readonly worker: Worker,
    private readonly port: MessagePort
  ) {
    const take = () => receiveMessageOnPort(port)?.message as WorkerMessage | undefined
    this.#inbox = new Inbox(cells, messagesCell(number), take)
  }

  /** @throws DeviceError if its device cannot be opened */
  static async start(init: Omit<WorkerInit, 'gradients' | 'port'>): Promise<WorkerHandle> {
    const { port1, port2 } = new MessageChannel()
    const gradients = allocateGradients(init.weights)
    const workerData: WorkerInit = { ...init, gradients, port: port2 }
    const worker = new Worker(new URL('./worker-thread.js', import.meta.url), { workerData, transferList: [port2] })
    await once(worker, 'message')
    worker.unref()
    return new WorkerHandle(init.worker, gradients, new Int32Array(init.cells), worker, port1)
  }

  /** @param ended called when the thread has ended */
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

  /** Number of its gradients in this step. */
  arrived(): number {
    return Atomics.load(this.cells, gradientsCell(this.number))
  }

  /** Blocks until more than `count` gradients have arrived. @returns the result of the task if it came first */
  waitFor(count: number): WorkerMessage | undefined {
    return this.#inbox.waitUntil(() => this.arrived() > count)
  }

  /** Blocks until the task is done. */
  receive(): WorkerMessage {
    return this.#inbox.receive()
  }

  #send(message: WorkerTask | 'stop'): void {
    this.port.postMessage(message)
    Atomics.add(this.cells, tasksCell(this.number), 1)
    Atomics.notify(this.cells, tasksCell(this.number))
  }
}

/**
 * Allocates a shared ring of gradient buffers, each large enough for any layer. The system commits pages on first
 * write.
 */
export function allocateGradients({ blocks }: SharedWeights): readonly Float32Array[] {
  const longest = blocks.reduce((most, { length }) => Math.max(most, length), 0)
  return Array.from({ length: RING_SIZE }, () => new Float32Array(new SharedArrayBuffer(4 * longest)))
}

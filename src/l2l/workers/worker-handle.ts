/**
 * The pool's handle of one worker thread: sends tasks, receives results, and gives access to its gradients in shared memory.
 * Messages are sent through ports that are read synchronously; shared integers wake the reader.
 */

import { once } from 'node:events'
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads'
import type { DataType } from '#tfjs'
import { DeviceError } from '../../device/types.js'
import type { NetworkSpec } from '../../nn/spec/network-spec.js'
import type { DeviceShare } from '../../nn/split.js'
import type { RowCopy } from '../dense-rows.js'
import type { StagePlace } from '../executor/pipeline.js'
import { addToBlock, type Execution, type ExecutorOptions } from '../executor/types.js'
import { addCoded, type CodedBlocks } from './gradient-codes.js'

/** Data of a starting worker. */
export interface WorkerInit {
  readonly network: NetworkSpec
  readonly backend: Execution['backend']
  readonly executorOptions: ExecutorOptions
  readonly weights: SharedWeights
  readonly cells: SharedArrayBuffer
  /** Shared ring of RING_SIZE gradient buffers, each large enough for any layer: see `Contributor`. */
  readonly gradients: readonly Float32Array[]
  /** How a worker of another process sends its gradients. @default as they are */
  readonly coded?: CodedBlocks
  /** Index of this worker, from 0. */
  readonly worker: number
  readonly port: MessagePort
}

/** Shared memory of a group of devices. */
export interface DeviceMemory {
  /** See `REDUCED`. */
  readonly cells: SharedArrayBuffer
  /** A ring of gradients for each device but the first. */
  readonly rings: readonly (readonly Float32Array[])[]
}

/** A model's weights in shared memory. */
export interface SharedWeights {
  /** Backed by SharedArrayBuffers. */
  readonly blocks: readonly Float32Array[]
  /** A number for each block, which changes with its weights. @default they change with each task */
  readonly versions?: Int32Array
  /** If other threads write the weights: for waiting until they are complete. */
  readonly signals?: { readonly shared: SharedArrayBuffer; readonly threads: number }
  /** Memory of devices whose gradients the parameter server sums. @default the pool allocates memory, and sums them */
  readonly devices?: DeviceMemory
}

/** A port to the stage above and one to the stage below; the last stage is below the first. */
export interface StagePorts {
  readonly above: MessagePort
  readonly below: MessagePort
}

/** A message from a stage to the one above or below: outputs, or gradients with respect to them. */
export interface Mail {
  readonly attempt: number
  readonly key: string
  readonly values: Float32Array | Int32Array
  readonly shape: number[]
  readonly dtype: DataType
}

/** A worker's share of a minibatch. */
export interface WorkerTask {
  /** Number of the call, by which it is aborted. */
  readonly attempt: number
  /** Seed of dropout and skips. */
  readonly step: number
  readonly updates: number | undefined
  readonly firstMicrobatch: number
  readonly rows: RowCopy
  /**
   * The place of the worker in a pipeline, whose rows are the whole minibatch. `blocks` are the weights that it loads, and `inputs` the
   * shapes of a sample at the input of each chunk. `ports` are given in the first step, and when the stages have changed.
   */
  readonly stage?: StagePlace & {
    readonly blocks: readonly number[]
    readonly inputs: readonly (readonly number[])[]
    readonly ports?: StagePorts
  }
  /** Its share of each block under tensor parallelism, whose rows are the whole minibatch; and the memory for sums: see `TensorDevice`. */
  readonly tensor?: DeviceShare & { readonly shared: SharedArrayBuffer }
}

export type WorkerMessage =
  /** The task is done; `ms` excludes waiting; `peakBytes` are on the device, so far. */
  | {
      readonly kind: 'done'
      readonly loss: number
      readonly hits: number
      readonly ms: number
      readonly peakBytes: number
    }
  /** Gradients of a layer of a pipeline, or of a share of a layer, the last one first. */
  | { readonly kind: 'gradients'; readonly gradients: readonly Float32Array[] }
  /** The task failed. */
  | { readonly kind: 'failed'; readonly code: string | undefined; readonly reason: string }

/** Size of the gradient rings: how many gradients a worker may be ahead of the reduction. */
export const RING_SIZE = 4

/**
 * Shared integers: the number of gradients reduced in this step, the aborted step, a number that changes with each message between
 * stages of a pipeline, the step whose gradients the parameter server sums, a bit for each worker that takes part in it, and for each
 * worker the number of tasks sent to it, a counter of its messages and gradients, the number of its gradients in this step, and the block of
 * each gradient in its ring.
 */
export const REDUCED = 0
export const ABORTED = 1
export const MAIL = 2
export const STEP = 3
export const MEMBERS = 4
const FIXED = 6
const EACH = 3 + RING_SIZE
export const cellCount = (workers: number) => FIXED + EACH * workers
export const tasksCell = (worker: number) => FIXED + EACH * worker
export const messagesCell = (worker: number) => FIXED + EACH * worker + 1
export const gradientsCell = (worker: number) => FIXED + EACH * worker + 2
export const gradientBlockCell = (worker: number, gradient: number) =>
  FIXED + EACH * worker + 3 + (gradient % RING_SIZE)

/** Wakes all stages that wait. */
export function wakeStages(cells: Int32Array): void {
  Atomics.add(cells, MAIL, 1)
  Atomics.notify(cells, MAIL)
}

/** A worker without any activity for this time is considered dead. */
export const TIMEOUT_MS = 120_000
/** How often a thread that waits for others looks whether their threads have ended. */
export const LOOK_MS = 500

/**
 * Blocks until a shared number changes.
 * @param hasEnded whether a thread that would change it has ended @default unknown
 * @returns false if such a thread has ended, or the number has not changed for TIMEOUT_MS
 */
export function awaitChange(cells: Int32Array, cell: number, seen: number, hasEnded = () => false): boolean {
  for (let waited = 0; waited < TIMEOUT_MS; waited += LOOK_MS) {
    if (Atomics.wait(cells, cell, seen, LOOK_MS) !== 'timed-out') return true
    // What it did last may be seen only now.
    if (hasEnded()) return Atomics.load(cells, cell) !== seen
  }
  return false
}

/**
 * Blocks until there is a message.
 * @param cells shared with the sender, which adds 1 to the number at `cell` after each message
 * @param take removes and returns a message that has arrived; undefined if there is none
 */
export function awaitMessage<T>(cells: Int32Array, cell: number, take: () => T | undefined): T {
  for (;;) {
    // Read before the messages, so that one that arrives between both ends the wait.
    const seen = Atomics.load(cells, cell)
    const message = take()
    if (message !== undefined) return message
    Atomics.wait(cells, cell, seen)
  }
}

/** The messages of a worker thread, for which the thread that has started it blocks. */
export class Inbox {
  readonly #cells: Int32Array
  readonly #cell: number
  readonly #take: () => WorkerMessage | undefined
  readonly #hasEnded: () => boolean
  #next: WorkerMessage | undefined

  /**
   * @param cells shared with the worker, which adds 1 to the number at `cell` after each gradient and each message
   * @param take removes and returns a message that has arrived; undefined if there is none
   * @param hasEnded whether the worker's thread has ended
   */
  constructor(cells: Int32Array, cell: number, take: () => WorkerMessage | undefined, hasEnded = () => false) {
    this.#cells = cells
    this.#cell = cell
    this.#take = take
    this.#hasEnded = hasEnded
  }

  /** Blocks until the condition holds, which only the worker's activity changes. @returns the next message if it came before */
  waitUntil(condition: () => boolean): WorkerMessage | undefined {
    for (;;) {
      const seen = Atomics.load(this.#cells, this.#cell)
      if (condition()) return undefined
      this.#next ??= this.#take()
      // The worker may have made the condition true and then sent the message.
      if (this.#next !== undefined) return condition() ? undefined : this.#takeNext()
      if (awaitChange(this.#cells, this.#cell, seen, this.#hasEnded)) continue
      return this.#failed(this.#hasEnded() ? 'its thread has ended' : `no response for ${TIMEOUT_MS / 1000} s`)
    }
  }

  /** The failure of its task or thread, if there is one; does not block. */
  fault(): WorkerMessage | undefined {
    const hasEnded = this.#hasEnded()
    this.#next ??= this.#take()
    if (this.#next?.kind === 'failed') return this.#takeNext()
    return hasEnded && this.#next === undefined ? this.#failed('its thread has ended') : undefined
  }

  /** Whether its task has failed. The failure stays to be received. */
  get hasFailed(): boolean {
    this.#next ??= this.#take()
    return this.#next?.kind === 'failed'
  }

  /** Blocks until there is a message. */
  receive(): WorkerMessage {
    return this.waitUntil(() => false) as WorkerMessage
  }

  #failed(reason: string): WorkerMessage {
    return { kind: 'failed', code: DeviceError.code, reason }
  }

  #takeNext(): WorkerMessage | undefined {
    const message = this.#next
    this.#next = undefined
    return message
  }
}

export class WorkerHandle {
  /** Whether a task was submitted whose result has not been received. */
  isBusy = false
  /** Peak bytes on its device so far. */
  peakBytes: number | undefined
  /** Index of its shared integers. */
  readonly number: number
  readonly #gradients: readonly Float32Array[]
  readonly #coded: CodedBlocks | undefined
  readonly #cells: Int32Array
  readonly #inbox: Inbox
  readonly #port: MessagePort
  #worker: Worker | undefined

  private constructor({ worker, gradients, coded, cells, port }: WorkerInit) {
    this.number = worker
    this.#gradients = gradients
    this.#coded = coded
    this.#cells = new Int32Array(cells)
    this.#port = port
    const take = () => receiveMessageOnPort(port)?.message as WorkerMessage | undefined
    this.#inbox = new Inbox(this.#cells, messagesCell(worker), take, () => this.hasEnded())
  }

  /**
   * Creates a worker whose other end runs in any thread.
   * @returns the handle, and what the other end is started with, whose port belongs to that thread
   */
  static pair(init: Omit<WorkerInit, 'gradients' | 'port'>): {
    readonly handle: WorkerHandle
    readonly init: WorkerInit
  } {
    const { port1, port2 } = new MessageChannel()
    const { devices } = init.weights
    const gradients = devices?.rings[init.worker] ?? allocateGradients(init.weights.blocks)
    const own: WorkerInit = { ...init, gradients, port: port1 }
    return { handle: new WorkerHandle(own), init: { ...own, port: port2 } }
  }

  /** Starts a worker thread. @throws DeviceError if its device cannot be opened */
  static async start(init: Omit<WorkerInit, 'gradients' | 'port'>): Promise<WorkerHandle> {
    const { handle, init: workerData } = WorkerHandle.pair(init)
    const transferList = [workerData.port]
    const worker = new Worker(new URL('./worker-thread.js', import.meta.url), { workerData, transferList })
    await once(worker, 'message')
    worker.unref()
    handle.#own(worker)
    return handle
  }

  #own(worker: Worker): void {
    this.#worker = worker
    // It remembers when the thread's event loop started.
    this.hasEnded()
  }

  /** Whether its thread has ended, although this thread has been blocked since and has received no event. */
  hasEnded(): boolean {
    // The idle time of a thread that has ended is -1, and so is its id once this thread has received the event.
    const { threadId = 0, performance } = this.#worker ?? {}
    return threadId < 0 || (performance?.eventLoopUtilization().idle ?? 0) < 0
  }

  /** @param ended called when the thread has ended */
  onExit(ended: () => void): void {
    this.#worker?.on('error', ended)
    this.#worker?.on('exit', ended)
  }

  submit(task: WorkerTask): void {
    this.isBusy = true
    Atomics.store(this.#cells, gradientsCell(this.number), 0)
    const { above, below } = task.stage?.ports ?? {}
    this.#send(task, above && below ? [above, below] : [])
  }

  stop(): void {
    this.#send('stop')
  }

  terminate(): void {
    this.#port.close()
    void this.#worker?.terminate()
  }

  /** Number of its gradients in this step. */
  arrived(): number {
    return Atomics.load(this.#cells, gradientsCell(this.number))
  }

  /** Blocks until more than `count` gradients have arrived. @returns the result of the task if it came first */
  waitFor(count: number): WorkerMessage | undefined {
    return this.#inbox.waitUntil(() => this.arrived() > count)
  }

  /** Adds its n-th gradient of this step, which has arrived. */
  addGradient(n: number, into: Float32Array): void {
    const gradient = this.#gradients[n % RING_SIZE]
    if (this.#coded === undefined) addToBlock(into, gradient.subarray(0, into.length))
    else addCoded(this.#coded, Atomics.load(this.#cells, gradientBlockCell(this.number, n)), gradient, into)
  }

  /** Whether its task has failed, for example because it was submitted to a device that had just left. */
  get hasFailed(): boolean {
    return this.#inbox.hasFailed
  }

  /** The failure of its task or thread, if there is one. */
  fault(): WorkerMessage | undefined {
    return this.#inbox.fault()
  }

  /** Blocks until the task is done. */
  receive(): WorkerMessage {
    return this.#inbox.receive()
  }

  #send(message: WorkerTask | 'stop', transfer: readonly MessagePort[] = []): void {
    this.#port.postMessage(message, transfer)
    Atomics.add(this.#cells, tasksCell(this.number), 1)
    Atomics.notify(this.#cells, tasksCell(this.number))
  }
}

/**
 * Allocates a shared ring of gradient buffers, each large enough for any layer. The system commits pages on first
 * write.
 */
export function allocateGradients(blocks: readonly { readonly length: number }[]): readonly Float32Array[] {
  const longest = blocks.reduce((most, { length }) => Math.max(most, length), 0)
  return Array.from({ length: RING_SIZE }, () => new Float32Array(new SharedArrayBuffer(4 * longest)))
}

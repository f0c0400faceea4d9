/**
 * Several devices with one parameter server. They divide the model, or else the microbatches of a minibatch are divided among this thread, worker
 * threads and workers of other processes, each with its own TensorFlow.js instance. Each layer's gradients are summed as soon as all have arrived, in
 * the order of the workers, by threads of the parameter server or by this thread. For the same shares the sums are bit-identical; because shares follow measured speeds, two
 * runs may differ by rounding.
 */
import { DeviceError, openedDevice } from '../../device/index.js'
import { type Blocks, DivergenceError } from '../../learning/index.js'
import type { NetworkSpec } from '../../nn/spec/network-spec.js'
import { type DenseRows, sliceBatch } from '../dense-rows.js'
import type { Executor } from '../executor/executor.js'
import { AbortedError } from '../executor/pipeline.js'
import {
  dividesModel,
  type Execution,
  type ExecutorOptions,
  fillBlock,
  type ParameterStore,
  type StepScore,
  WorkerFailedError
} from '../executor/types.js'
import { LoadBalancer, sum } from './balancer.js'
import type { CodedBlocks } from './gradient-codes.js'
import { type ModelGroup, PipelineStages } from './stages.js'
import { TensorDevices } from './tensor.js'
import {
  ABORTED,
  allocateGradients,
  cellCount,
  messagesCell,
  REDUCED,
  RING_SIZE,
  type SharedWeights,
  TIMEOUT_MS,
  WorkerHandle,
  type WorkerInit,
  type WorkerMessage,
  wakeStages
} from './worker-handle.js'

interface PoolOptions {
  readonly network: NetworkSpec
  readonly backend: Execution['backend']
  /** Options of each worker, including the memory limit. */
  readonly executorOptions: ExecutorOptions
  readonly weights: SharedWeights
  /** How workers of other processes send their gradients. @default as they are */
  readonly coded?: CodedBlocks
  /** Total number of devices including this thread's. */
  readonly workers: number
}

/** A device of a pool. */
export interface DeviceReport {
  /** Its backend. */
  readonly name: string
  /** Id of a worker of another process; undefined for devices of this one. */
  readonly from?: string
  /** Mean time of a microbatch; undefined before the first one. */
  readonly microbatchMs?: number
  /** Share of the microbatches, or of a pipeline's time, 0 … 1. */
  readonly share: number
  /** Peak bytes on the device so far; undefined before the first step. */
  readonly peakBytes?: number
}

type StageArguments = [Executor, ParameterStore, DenseRows, Parameters<ModelGroup['train']>[4]]

/** A number of reduced gradients after which all rings have room. */
const NEVER_FULL = 2 ** 30
/** Largest number of workers besides this thread. */
const MAX_WORKERS = 64

export class DevicePool {
  readonly #cells: Int32Array
  readonly #options: PoolOptions
  readonly #microbatch: number
  readonly #gradients: readonly Float32Array[]
  #workers: readonly WorkerHandle[] = []
  /** Workers of other processes that are not ready yet. */
  readonly #starting = new Map<number, WorkerHandle>()
  readonly #balancer = new LoadBalancer(1)
  readonly #origins = new WeakMap<WorkerHandle, Pick<DeviceReport, 'name' | 'from'>>()
  readonly #stages: ModelGroup
  #attempts = 0
  #peakBytes: number | undefined

  private constructor(options: PoolOptions) {
    this.#options = options
    this.#microbatch = options.executorOptions.microbatch ?? 1
    const { blocks, devices } = options.weights
    this.#cells = new Int32Array(devices?.cells ?? new SharedArrayBuffer(4 * cellCount(MAX_WORKERS)))
    this.#gradients = allocateGradients(blocks)
    this.#cells[ABORTED] = -1
    const { executorOptions } = options
    this.#stages =
      executorOptions.schedule === 'tensor'
        ? new TensorDevices(this.#cells)
        : new PipelineStages(this.#cells, executorOptions.pipeline, options.weights.versions !== undefined)
  }

  /** @throws DeviceError if a worker does not start */
  static async open(options: PoolOptions): Promise<DevicePool> {
    const pool = new DevicePool(options)
    const started = Array.from({ length: options.workers - 1 }, (_, worker) => WorkerHandle.start(pool.#initOf(worker)))
    for (const worker of await Promise.all(started)) {
      worker.onExit(() => pool.#remove(worker))
      pool.#admit(worker)
    }
    return pool
  }

  #initOf(worker: number): Omit<WorkerInit, 'gradients' | 'port'> {
    const { network, backend, executorOptions, weights } = this.#options
    return { network, backend, executorOptions, weights, cells: this.#cells.buffer as SharedArrayBuffer, worker }
  }

  /**
   * Prepares for a worker of another process.
   * @returns what its other end is started with, whose port must be transferred; undefined if there are too many workers
   */
  prepare(): WorkerInit | undefined {
    const used = new Set([...this.#workers.map(({ number }) => number), ...this.#starting.keys()])
    const free = Array.from({ length: MAX_WORKERS }, (_, worker) => worker).find(worker => !used.has(worker))
    if (free === undefined) return undefined
    const { handle, init } = WorkerHandle.pair({ ...this.#initOf(free), coded: this.#options.coded })
    this.#starting.set(free, handle)
    return init
  }

  /**
   * A worker that was prepared executes tasks from the next step on.
   * @param worker number of the worker
   * @param origin its device and where it is
   */
  ready(worker: number, { name, from }: Pick<DeviceReport, 'name' | 'from'>): void {
    const handle = this.#starting.get(worker)
    if (handle === undefined) return
    this.#starting.delete(worker)
    this.#origins.set(handle, { name, from })
    this.#admit(handle)
  }

  /** The devices of the last step, this thread's first; undefined if it is the only one. */
  report(): DeviceReport[] | undefined {
    if (this.#workers.length === 0) return undefined
    const own = { name: openedDevice().name }
    const { costs, shares } = this.#balancer
    const all = sum(shares)
    const { busyMs } = this.#stages
    return [own, ...this.#workers.map(worker => this.#origins.get(worker) ?? own)].map((origin, i) => ({
      ...origin,
      microbatchMs: costs[i],
      share: busyMs.length > 0 ? (busyMs[i] ?? 0) / sum(busyMs) : all === 0 ? 0 : (shares[i] ?? 0) / all,
      peakBytes: i === 0 ? this.#peakBytes : this.#workers[i - 1].peakBytes
    }))
  }

  /** A worker that was prepared has gone. */
  lost(worker: number): void {
    this.#starting.delete(worker)
    const handle = this.#workers.find(({ number }) => number === worker)
    if (handle !== undefined && !handle.isBusy) this.#remove(handle)
  }

  /** Copies the parameters of the next step to the memory from which workers read. */
  load(parameters: Blocks): void {
    const { blocks, versions } = this.#options.weights
    for (const [k, block] of blocks.entries()) {
      if (versions !== undefined && bufferOf(block).equals(bufferOf(parameters[k]))) continue
      block.set(parameters[k])
      if (versions !== undefined) versions[k]++
    }
  }

  #admit(worker: WorkerHandle): void {
    this.#workers = [...this.#workers, worker]
    this.#balancer.add()
  }

  /** Number of remaining devices, including this thread's. */
  get size(): number {
    return 1 + this.#workers.length
  }

  /**
   * Forward and backward pass of one minibatch, as by `Executor.train`.
   * @param executor of this thread
   * @param updates as for `Executor.train`
   * @throws WorkerFailedError, and the errors of `Executor.train`; gradients of upper layers may have been pushed then
   */
  train(executor: Executor, store: ParameterStore, rows: DenseRows, updates?: number): StepScore {
    const attempt = this.#attempts++
    // By the number of updates, so that a run that is continued draws the same numbers.
    const step = updates ?? attempt
    if (dividesModel(executor.schedule)) return this.#trainStages(executor, store, rows, { attempt, step, updates })
    const count = Math.ceil(rows.size / this.#microbatch)
    const shares = this.#balancer.assign(count)
    Atomics.store(this.#cells, REDUCED, 0)
    const busy = this.#workers.filter((_, i) => shares[i + 1] > 0)
    const reduction = this.#reduction(store, attempt, busy)
    let first = shares[0]
    for (const [i, worker] of this.#workers.entries()) {
      if (shares[i + 1] > 0)
        worker.submit({
          attempt,
          step,
          updates,
          firstMicrobatch: first,
          rows: this.#rowsOf(rows, first, shares[i + 1])
        })
      first += shares[i + 1]
    }
    try {
      const start = performance.now()
      const ownRows = sliceBatch(rows, 0, Math.min(rows.size, shares[0] * this.#microbatch))
      const { meter } = executor
      const before = meter.bytes
      const score = { ...executor.train(reduction.store, ownRows, { step, updates }) }
      this.#peakBytes = meter.peakBytes - before
      reduction.finish()
      this.#balancer.record(0, shares[0], performance.now() - start - reduction.waitedMs())
      for (const worker of busy) {
        const done = worker.receive()
        if (done.kind !== 'done') throw this.#failure(worker, done)
        worker.isBusy = false
        worker.peakBytes = done.peakBytes
        score.loss += done.loss
        score.hits += done.hits
        const index = this.#workers.indexOf(worker) + 1
        this.#balancer.record(index, shares[index], done.ms)
      }
      return score
    } catch (error) {
      this.#abort(attempt)
      store.sums?.abort()
      throw error
    }
  }

  /** Takes the gradients of this thread, which are summed with those of others here or by the store. */
  #reduction(store: ParameterStore, attempt: number, busy: readonly WorkerHandle[]): Summing {
    const { sums } = store
    if (busy.length === 0) return { store, waitedMs: () => 0, finish: () => undefined }
    if (sums === undefined) {
      const contributors = busy.map(worker => this.#contributor(worker))
      const reduction = new Reduction(store, this.#gradients, contributors, count => {
        Atomics.store(this.#cells, REDUCED, count)
        Atomics.notify(this.#cells, REDUCED)
      })
      return { store: reduction, waitedMs: () => reduction.waitedMs, finish: () => reduction.finish() }
    }
    const members = busy.map(({ number }) => number)
    const check = () => {
      for (const worker of busy) {
        const end = worker.fault()
        if (end !== undefined) throw this.#failure(worker, end)
      }
    }
    const before = sums.waitedMs
    sums.begin(members, attempt, check)
    return { store, waitedMs: () => sums.waitedMs - before, finish: () => sums.finish() }
  }

  /** As devices that divide the model. */
  #trainStages(...[executor, store, rows, task]: StageArguments): StepScore {
    if (this.#workers.length === 0) return executor.train(store, rows, task)
    const { meter } = executor
    const before = meter.bytes
    try {
      const score = this.#stages.train(executor, this.#workers, store, rows, task)
      this.#peakBytes = meter.peakBytes - before
      return score
    } catch (error) {
      this.#abort(task.attempt)
      const cause = this.#stages.failures.find(({ message }) => message.code !== new AbortedError().code)
      if (!(error instanceof AbortedError)) throw error
      if (cause) throw this.#failure(cause.worker, cause.message)
      throw new DeviceError(`no tensor of another device for ${TIMEOUT_MS / 1000} s: start again`)
    }
  }

  /** Share of the last step's time in which devices that divide the model waited for others; undefined for other schedules. */
  get bubble(): number | undefined {
    return this.#stages.bubble
  }

  close(): void {
    this.#stages.close()
    for (const worker of this.#workers) worker.stop()
    this.#workers = []
  }

  #rowsOf(rows: DenseRows, first: number, count: number) {
    return rows.copyRange(first * this.#microbatch, Math.min(rows.size, (first + count) * this.#microbatch))
  }

  #contributor(worker: WorkerHandle): Contributor {
    const wait = (count: number) => {
      const end = worker.waitFor(count)
      if (end !== undefined) throw this.#failure(worker, end)
    }
    return { add: (n, into) => worker.addGradient(n, into), arrived: () => worker.arrived(), wait }
  }

  #failure(worker: WorkerHandle, message: WorkerMessage): Error {
    const { code, reason } =
      message.kind === 'failed' ? message : { code: undefined, reason: 'unexpected end of its task' }
    worker.isBusy = false
    if (code === DivergenceError.code) return new DivergenceError(reason)
    this.#remove(worker)
    return new WorkerFailedError(`device worker ${worker.number + 1} failed: ${reason}`)
  }

  /** Waits until no worker executes the step. */
  #abort(attempt: number): void {
    Atomics.store(this.#cells, ABORTED, attempt)
    // Changed, so that a worker that is about to wait does not.
    Atomics.store(this.#cells, REDUCED, NEVER_FULL)
    Atomics.notify(this.#cells, REDUCED)
    wakeStages(this.#cells)
    // A server thread may wait for a gradient.
    for (let cell = messagesCell(0); cell < this.#cells.length; cell += messagesCell(1) - messagesCell(0)) {
      Atomics.add(this.#cells, cell, 1)
      Atomics.notify(this.#cells, cell)
    }
    for (const worker of this.#workers) {
      while (worker.isBusy) {
        const message = worker.receive()
        if (message.kind === 'gradients') continue
        if (message.kind === 'failed') this.#stages.failures.push({ worker, message })
        if (message.kind === 'failed' && message.code === DeviceError.code) this.#remove(worker)
        worker.isBusy = false
      }
    }
  }

  #remove(worker: WorkerHandle): void {
    const index = this.#workers.indexOf(worker)
    if (index < 0) return
    this.#workers = this.#workers.filter(other => other !== worker)
    this.#balancer.remove(index + 1)
    worker.terminate()
  }
}

function bufferOf({ buffer, byteOffset, byteLength }: Float32Array): Buffer {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength)
}

/** Where the executor's gradients of a step go, how long it has waited for those of others, and the end of the step. */
interface Summing {
  readonly store: ParameterStore
  waitedMs(): number
  finish(): void
}

/** Another worker's gradients, in the order of the backward pass. */
interface Contributor {
  /** Adds the n-th gradient, which has arrived. */
  add(n: number, into: Float32Array): void
  /** Number of gradients that have arrived in this step. @throws an error of the worker */
  arrived(): number
  /** Blocks until more than `count` gradients have arrived. @throws an error of the worker */
  wait(count: number): void
}

interface PendingGradient {
  readonly layer: number
  readonly gradient: Float32Array
}

/**
 * Sums each layer's gradients of all workers as soon as they have arrived, in the order of the workers, and pushes the
 * sum to the store. This thread does not block on other workers until RING_SIZE of its own gradients are pending or the
 * step ends.
 */
class Reduction implements ParameterStore {
  /** Milliseconds spent waiting for other workers. */
  waitedMs = 0
  #reduced = 0
  readonly #pending: PendingGradient[] = []

  /**
   * @param own ring of RING_SIZE buffers for this thread's pending gradients
   * @param reduced called after each sum with the number of sums
   */
  constructor(
    private readonly store: ParameterStore,
    private readonly own: readonly Float32Array[],
    private readonly others: readonly Contributor[],
    private readonly reduced: (count: number) => void
  ) {}

  weights(layer: number): Float32Array {
    return this.store.weights(layer)
  }

  pushGradients(layer: number, gradients: readonly Float32Array[]): void {
    if (this.others.length === 0) {
      this.store.pushGradients(layer, gradients)
      return
    }
    if (this.#pending.length === RING_SIZE) this.#reduceNext()
    this.#pending.push({ layer, gradient: this.#copy(gradients) })
    while (this.#pending.length > 0 && this.others.every(other => other.arrived() > this.#reduced)) this.#reduceNext()
  }

  skip(layer: number): void {
    this.store.skip(layer)
  }

  /** Blocks until all gradients have been reduced. */
  finish(): void {
    while (this.#pending.length > 0) this.#reduceNext()
  }

  #copy(gradients: readonly Float32Array[]): Float32Array {
    const buffer = this.own[(this.#reduced + this.#pending.length) % RING_SIZE]
    return buffer.subarray(0, fillBlock(buffer, gradients))
  }

  #reduceNext(): void {
    const { layer, gradient } = this.#pending.shift() as PendingGradient
    const start = performance.now()
    for (const other of this.others) other.wait(this.#reduced)
    this.waitedMs += performance.now() - start
    for (const other of this.others) other.add(this.#reduced, gradient)
    this.store.pushGradients(layer, [gradient])
    this.reduced(++this.#reduced)
  }
}

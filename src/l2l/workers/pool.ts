/**
 * Several devices on one param-server: a minibatch's microbatches are shared among this thread and worker threads, each with
 * a TensorFlow.js of its own, and each layer's gradients are added up as soon as all are there, in the order of the workers. For
 * given shares the sums have the same bits every time; as shares follow the measured speeds, two runs may differ by rounding.
 */
import { DeviceError } from '../../device/index.js'
import { DivergenceError } from '../../learner/index.js'
import type { NetworkSpec } from '../../nn/spec/network-spec.js'
import { type DenseRows, sliceBatch } from '../dense-rows.js'
import type { Execution } from '../execution-options.js'
import type { Executor, ExecutorOptions } from '../executor/executor.js'
import type { ParameterStore, StepScore } from '../executor/types.js'
import { LoadBalancer } from './load-balancer.js'
import { ABORTED, cellCount, REDUCED, type SharedWeights, type WorkerMessage } from './messages.js'
import { type Contributor, Reduction } from './reduction.js'
import { allocateGradients, WorkerHandle } from './worker-handle.js'

export interface PoolOptions {
  readonly network: NetworkSpec
  readonly backend: Execution['backend']
  /** Of each worker; device memory as well. */
  readonly executorOptions: ExecutorOptions
  readonly weights: SharedWeights
  /** Devices in all, this thread's one included, ≥ 2. */
  readonly workers: number
}

/** A worker's device failed: the step is lost, and the pool goes on without it. */
export class WorkerFailedError extends DeviceError {}

export class DevicePool {
  readonly #cells: Int32Array
  readonly #microbatch: number
  readonly #gradients: readonly Float32Array[]
  #workers: readonly WorkerHandle[]
  readonly #balancer: LoadBalancer
  #steps = 0

  private constructor(
    cells: Int32Array,
    helpers: readonly WorkerHandle[],
    { executorOptions: relay, weights, workers }: PoolOptions
  ) {
    this.#cells = cells
    this.#workers = helpers
    this.#microbatch = relay.microbatch ?? 1
    this.#gradients = allocateGradients(weights)
    this.#balancer = new LoadBalancer(workers)
  }

  /** @throws DeviceError if a worker does not start */
  static async open(options: PoolOptions): Promise<DevicePool> {
    const { network, backend, executorOptions: relay, weights, workers } = options
    const cells = new Int32Array(new SharedArrayBuffer(4 * cellCount(workers - 1)))
    cells[ABORTED] = -1
    const helpers = await Promise.all(
      Array.from({ length: workers - 1 }, (_, worker) =>
        WorkerHandle.start({
          network,
          backend,
          executorOptions: relay,
          weights,
          cells: cells.buffer as SharedArrayBuffer,
          worker
        })
      )
    )
    const pool = new DevicePool(cells, helpers, options)
    for (const worker of helpers) worker.onExit(() => pool.#remove(worker))
    return pool
  }

  /** Devices that are left, this thread's one included. */
  get size(): number {
    return 1 + this.#workers.length
  }

  /**
   * One minibatch forward and back, like the relay's.
   * @param executor this thread's
   * @param updates as for the relay
   * @throws WorkerFailedError, and what the relay throws; upper layers' gradients may have been taken then
   */
  train(executor: Executor, store: ParameterStore, rows: DenseRows, updates?: number): StepScore {
    const step = this.#steps++
    const count = Math.ceil(rows.size / this.#microbatch)
    const shares = this.#balancer.assign(count)
    Atomics.store(this.#cells, REDUCED, 0)
    let first = shares[0]
    for (const [i, worker] of this.#workers.entries()) {
      if (shares[i + 1] > 0)
        worker.submit({ step, updates, firstMicrobatch: first, ...this.#rowsOf(rows, first, shares[i + 1]) })
      first += shares[i + 1]
    }
    const busy = this.#workers.filter(({ isBusy }) => isBusy)
    try {
      const start = performance.now()
      const others = busy.map(worker => this.#contributor(worker))
      const reduction = new Reduction(store, this.#gradients, others, count => {
        Atomics.store(this.#cells, REDUCED, count)
        Atomics.notify(this.#cells, REDUCED)
      })
      const own = sliceBatch(rows, 0, Math.min(rows.size, shares[0] * this.#microbatch))
      const score = { ...executor.train(reduction, own, { step, updates }) }
      reduction.finish()
      this.#balancer.record(0, shares[0], performance.now() - start - reduction.waitedMs)
      for (const worker of busy) {
        const done = worker.receive()
        if (done.kind !== 'done') throw this.#failure(worker, done)
        worker.isBusy = false
        score.loss += done.loss
        score.hits += done.hits
        const place = this.#workers.indexOf(worker) + 1
        this.#balancer.record(place, shares[place], done.ms)
      }
      return score
    } catch (error) {
      this.#abort(step)
      throw error
    }
  }

  close(): void {
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
    return { gradients: worker.gradients, arrived: () => worker.arrived(), wait }
  }

  #failure(worker: WorkerHandle, message: WorkerMessage): Error {
    const { code, reason } = message.kind === 'failed' ? message : { code: undefined, reason: 'it lost its place' }
    worker.isBusy = false
    if (code === DivergenceError.code) return new DivergenceError(reason)
    this.#remove(worker)
    return new WorkerFailedError(`device worker ${worker.number + 1} failed: ${reason}`)
  }

  /** Waits until nobody works for the step any more. */
  #abort(step: number): void {
    Atomics.store(this.#cells, ABORTED, step)
    Atomics.notify(this.#cells, REDUCED)
    for (const worker of this.#workers) {
      while (worker.isBusy) {
        const message = worker.receive()
        if (message.kind === 'failed' && message.code === DeviceError.code) this.#remove(worker)
        worker.isBusy = false
      }
    }
  }

  #remove(worker: WorkerHandle): void {
    const place = this.#workers.indexOf(worker)
    if (place < 0) return
    this.#workers = this.#workers.filter(other => other !== worker)
    this.#balancer.remove(place + 1)
    worker.terminate()
  }
}

/**
 * Several devices with one parameter server: the microbatches of a minibatch are divided among this thread and worker
 * threads, each with its own TensorFlow.js instance. Each layer's gradients are summed as soon as all have arrived, in
 * the order of the workers. For the same shares the sums are bit-identical; because shares follow measured speeds, two
 * runs may differ by rounding.
 */
import { DeviceError } from '../../device/index.js'
import { DivergenceError } from '../../learner/index.js'
import type { NetworkSpec } from '../../nn/spec/network-spec.js'
import { type DenseRows, sliceBatch } from '../dense-rows.js'
import type { Executor } from '../executor/executor.js'
import type { Execution, ExecutorOptions, ParameterStore, StepScore } from '../executor/types.js'
import { LoadBalancer } from './load-balancer.js'
import { ABORTED, cellCount, REDUCED, type SharedWeights, type WorkerMessage } from './messages.js'
import { type Contributor, Reduction } from './reduction.js'
import { WorkerFailedError } from './worker-failed.js'
import { allocateGradients, WorkerHandle } from './worker-handle.js'

export interface PoolOptions {
  readonly network: NetworkSpec
  readonly backend: Execution['backend']
  /** Options of each worker, including the memory limit. */
  readonly executorOptions: ExecutorOptions
  readonly weights: SharedWeights
  /** Total number of devices including this thread's, ≥ 2. */
  readonly workers: number
}

export class DevicePool {
  readonly #cells: Int32Array
  readonly #microbatch: number
  readonly #gradients: readonly Float32Array[]
  #workers: readonly WorkerHandle[]
  readonly #balancer: LoadBalancer
  #attempts = 0

  private constructor(
    cells: Int32Array,
    workerHandles: readonly WorkerHandle[],
    { executorOptions, weights, workers }: PoolOptions
  ) {
    this.#cells = cells
    this.#workers = workerHandles
    this.#microbatch = executorOptions.microbatch ?? 1
    this.#gradients = allocateGradients(weights)
    this.#balancer = new LoadBalancer(workers)
  }

  /** @throws DeviceError if a worker does not start */
  static async open(options: PoolOptions): Promise<DevicePool> {
    const { network, backend, executorOptions, weights, workers } = options
    const cells = new Int32Array(new SharedArrayBuffer(4 * cellCount(workers - 1)))
    cells[ABORTED] = -1
    const workerHandles = await Promise.all(
      Array.from({ length: workers - 1 }, (_, worker) =>
        WorkerHandle.start({
          network,
          backend,
          executorOptions,
          weights,
          cells: cells.buffer as SharedArrayBuffer,
          worker
        })
      )
    )
    const pool = new DevicePool(cells, workerHandles, options)
    for (const worker of workerHandles) worker.onExit(() => pool.#remove(worker))
    return pool
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
    const count = Math.ceil(rows.size / this.#microbatch)
    const shares = this.#balancer.assign(count)
    Atomics.store(this.#cells, REDUCED, 0)
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
    const busy = this.#workers.filter(({ isBusy }) => isBusy)
    try {
      const start = performance.now()
      const contributors = busy.map(worker => this.#contributor(worker))
      const reduction = new Reduction(store, this.#gradients, contributors, count => {
        Atomics.store(this.#cells, REDUCED, count)
        Atomics.notify(this.#cells, REDUCED)
      })
      const ownRows = sliceBatch(rows, 0, Math.min(rows.size, shares[0] * this.#microbatch))
      const score = { ...executor.train(reduction, ownRows, { step, updates }) }
      reduction.finish()
      this.#balancer.record(0, shares[0], performance.now() - start - reduction.waitedMs)
      for (const worker of busy) {
        const done = worker.receive()
        if (done.kind !== 'done') throw this.#failure(worker, done)
        worker.isBusy = false
        score.loss += done.loss
        score.hits += done.hits
        const index = this.#workers.indexOf(worker) + 1
        this.#balancer.record(index, shares[index], done.ms)
      }
      return score
    } catch (error) {
      this.#abort(attempt)
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
    const index = this.#workers.indexOf(worker)
    if (index < 0) return
    this.#workers = this.#workers.filter(other => other !== worker)
    this.#balancer.remove(index + 1)
    worker.terminate()
  }
}

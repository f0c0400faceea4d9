/**
 * Several devices on one param-server: a minibatch's microbatches are shared among this thread and worker threads, each with
 * a TensorFlow.js of its own, and each layer's gradients are added up as soon as all are there, in the order of the workers. For
 * given shares the sums have the same bits every time; as shares follow the measured speeds, two runs may differ by rounding.
 */
import { DeviceError } from '../../device/index.js'
import { DivergenceError } from '../../learner/index.js'
import type { NetworkSpec } from '../description.js'
import type { Execution } from '../execution-options.js'
import type { Relay, RelayOptions } from '../relay/relay.js'
import type { Host, StepScore } from '../relay/types.js'
import { type DenseRows, partOf } from '../rows.js'
import { gradientsFor, Helper } from './helper.js'
import { cellsFor, type FromWorker, GIVEN_UP, REDUCED, type SharedWeights } from './messages.js'
import { type Contributor, Reduction } from './reduction.js'
import { Shares } from './shares.js'

export interface PoolOptions {
  readonly network: NetworkSpec
  readonly backend: Execution['backend']
  /** Of each worker; device memory as well. */
  readonly relay: RelayOptions
  readonly weights: SharedWeights
  /** Devices in all, this thread's one included, ≥ 2. */
  readonly workers: number
}

/** A worker's device failed: the step is lost, and the pool goes on without it. */
export class WorkerFailedError extends DeviceError {}

export class DevicePool {
  readonly #cells: Int32Array
  readonly #unit: number
  readonly #own: readonly Float32Array[]
  #helpers: readonly Helper[]
  readonly #shares: Shares
  #steps = 0

  private constructor(cells: Int32Array, helpers: readonly Helper[], { relay, weights, workers }: PoolOptions) {
    this.#cells = cells
    this.#helpers = helpers
    this.#unit = relay.microbatch ?? 1
    this.#own = gradientsFor(weights)
    this.#shares = new Shares(workers)
  }

  /** @throws DeviceError if a worker does not start */
  static async open(options: PoolOptions): Promise<DevicePool> {
    const { network, backend, relay, weights, workers } = options
    const cells = new Int32Array(new SharedArrayBuffer(4 * cellsFor(workers - 1)))
    cells[GIVEN_UP] = -1
    const helpers = await Promise.all(
      Array.from({ length: workers - 1 }, (_, worker) =>
        Helper.start({ network, backend, relay, weights, cells: cells.buffer as SharedArrayBuffer, worker })
      )
    )
    const pool = new DevicePool(cells, helpers, options)
    for (const helper of helpers) helper.watch(() => pool.#remove(helper))
    return pool
  }

  /** Devices that are left, this thread's one included. */
  get size(): number {
    return 1 + this.#helpers.length
  }

  /**
   * One minibatch forward and back, like the relay's.
   * @param relay this thread's
   * @param updates as for the relay
   * @throws WorkerFailedError, and what the relay throws; upper layers' gradients may have been taken then
   */
  train(relay: Relay, host: Host, rows: DenseRows, updates?: number): StepScore {
    const step = this.#steps++
    const count = Math.ceil(rows.size / this.#unit)
    const shares = this.#shares.of(count)
    Atomics.store(this.#cells, REDUCED, 0)
    let first = shares[0]
    for (const [i, helper] of this.#helpers.entries()) {
      if (shares[i + 1] > 0)
        helper.begin({ step, updates, firstMicrobatch: first, ...this.#cut(rows, first, shares[i + 1]) })
      first += shares[i + 1]
    }
    const busy = this.#helpers.filter(({ isBusy }) => isBusy)
    try {
      const start = performance.now()
      const others = busy.map(helper => this.#contributor(helper))
      const reduction = new Reduction(host, this.#own, others, count => {
        Atomics.store(this.#cells, REDUCED, count)
        Atomics.notify(this.#cells, REDUCED)
      })
      const own = partOf(rows, 0, Math.min(rows.size, shares[0] * this.#unit))
      const score = { ...relay.train(reduction, own, { step, updates }) }
      reduction.finish()
      this.#shares.measured(0, shares[0], performance.now() - start - reduction.waitedMs)
      for (const helper of busy) {
        const done = helper.receive()
        if (done.kind !== 'done') throw this.#failure(helper, done)
        helper.isBusy = false
        score.loss += done.loss
        score.hits += done.hits
        const place = this.#helpers.indexOf(helper) + 1
        this.#shares.measured(place, shares[place], done.ms)
      }
      return score
    } catch (error) {
      this.#giveUp(step)
      throw error
    }
  }

  close(): void {
    for (const helper of this.#helpers) helper.stop()
    this.#helpers = []
  }

  #cut(rows: DenseRows, first: number, count: number) {
    return rows.copied(first * this.#unit, Math.min(rows.size, (first + count) * this.#unit))
  }

  #contributor(helper: Helper): Contributor {
    const wait = (count: number) => {
      const end = helper.waitFor(count)
      if (end !== undefined) throw this.#failure(helper, end)
    }
    return { gradients: helper.gradients, arrived: () => helper.arrived(), wait }
  }

  #failure(helper: Helper, message: FromWorker): Error {
    const { name, reason } = message.kind === 'failed' ? message : { name: 'Error', reason: 'it lost its place' }
    helper.isBusy = false
    if (name === 'DivergenceError') return new DivergenceError(reason)
    this.#remove(helper)
    return new WorkerFailedError(`device worker ${helper.number + 1} failed: ${reason}`)
  }

  /** Waits until nobody works for the step any more. */
  #giveUp(step: number): void {
    Atomics.store(this.#cells, GIVEN_UP, step)
    Atomics.notify(this.#cells, REDUCED)
    for (const helper of this.#helpers) {
      while (helper.isBusy) {
        const message = helper.receive()
        if (message.kind === 'failed' && message.name === 'DeviceError') this.#remove(helper)
        helper.isBusy = false
      }
    }
  }

  #remove(helper: Helper): void {
    const place = this.#helpers.indexOf(helper)
    if (place < 0) return
    this.#helpers = this.#helpers.filter(other => other !== helper)
    this.#shares.without(place + 1)
    helper.terminate()
  }
}

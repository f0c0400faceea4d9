/** Training a network in one process: the relay and the param-server as an engine that `SerialTrainer` can drive. */
import { openedDevice } from '../../device/index.js'
import {
  type AveragingSpec,
  type Engine,
  type Examples,
  newProgress,
  type PredictWith,
  type Rest,
  type RuleSpec,
  type Trained
} from '../../learner/index.js'
import { eachInitialBlock } from '../../nn/blocks.js'
import type { NetworkSpec } from '../../nn/spec/network-spec.js'
import type { Model } from '../../nn/types.js'
import { DenseRows, predictsNextToken } from '../dense-rows.js'
import type { Execution } from '../execution-options.js'
import { Executor, type ExecutorOptions } from '../executor/executor.js'
import type { StepScore } from '../executor/types.js'
import { INITIAL_SEED } from '../network-learner.js'
import { DevicePool, WorkerFailedError } from '../workers/pool.js'
import { ParamServer } from './param-server.js'

export interface L2LEngineOptions extends ExecutorOptions {
  readonly model: Model
  /** A blockwise one: see `isBlockwise`. */
  readonly rule: RuleSpec
  readonly averaging: AveragingSpec
  /** Inputs an update, ≥ 1. */
  readonly batch: number
  /** `average` costs a forward pass more; with `current` the score is that of the training pass, dropout and all. */
  readonly predictWith: PredictWith
  /** Threads of the param-server. Default: one under `l2l-p`, else none. */
  readonly serverThreads?: number
  /** Devices, each of which takes a part of the minibatch: see `share`. Default 1. */
  readonly workers?: number
}

/** Where a run's time and memory went. */
export interface ExecutionReport {
  readonly steps: number
  /** Mean of all steps but the first, scoring left out. */
  readonly stepMs: number
  /** Waiting for the param-server, a step. */
  readonly exposedMs: number
  /** Of all buffers that are alive at once: what a limit is about. */
  readonly devicePeakBytes: number
  /** Physically taken by the backend at most, with what kernels hold while they run, and what it never gives back. */
  readonly deviceTakenBytes: number
  readonly hostPeakBytes: number
  /** Layers' gradients that were not finite, and were left out. */
  readonly dropped: number
  /** Devices at the end of the run. */
  readonly workers: number
  /** Steps that a failed device ended. */
  readonly lostSteps: number
}

export class L2LEngine implements Engine {
  readonly progress = newProgress()
  updates = 0
  readonly #options: L2LEngineOptions
  readonly #executor: Executor
  readonly #server: ParamServer
  readonly #rows: DenseRows
  #pool: DevicePool | undefined
  #workerCount = 1
  #lostSteps = 0
  #firstMs = 0
  #totalMs = 0
  #firstWaitedMs = 0
  #waitedMs = 0

  /** @throws OptionError */
  constructor(options: L2LEngineOptions) {
    const { model, rule, averaging, workers = 1 } = options
    this.#options = options
    this.#executor = new Executor(model, options)
    const threads = options.serverThreads ?? (this.#executor.schedule === 'l2l-p' ? 1 : 0)
    const initial = eachInitialBlock(model, INITIAL_SEED)
    this.#server = new ParamServer({ model, initial, rule, averaging, threads, isShared: workers > 1 })
    this.#rows = new DenseRows(model)
    this.#executor.meter.resetPeak()
  }

  /** Starts the workers that were asked for. @throws DeviceError */
  async startWorkers(network: NetworkSpec, backend: Execution['backend']): Promise<void> {
    const { workers = 1 } = this.#options
    if (workers === 1) return
    const { schedule, microbatch, stash, deviceMemory, keeps, resident, precision } = this.#options
    const relay = { schedule, microbatch, stash, deviceMemory, keeps, resident, precision }
    this.#pool = await DevicePool.open({
      network,
      backend,
      executorOptions: relay,
      weights: this.#server.shared,
      workers
    })
  }

  learn(examples: Examples): void {
    const needsLabel = !predictsNextToken(this.#options.model)
    for (let row = 0; row < examples.size; row++) {
      if (needsLabel && Number.isNaN(examples.labels[row])) {
        this.progress.unlabelled++
        continue
      }
      this.#rows.append(examples, row)
      if (this.#rows.size === this.#options.batch) this.#step()
    }
  }

  finish(rest: Rest = 'learn'): Trained {
    if (this.#rows.size > 0 && rest === 'learn') this.#step()
    const { parameters, average, state } = this.#server.collect()
    this.#server.close()
    this.#executor.close()
    this.#workerCount = this.#pool?.size ?? 1
    this.#pool?.close()
    return { dimension: this.#rows.width, parameters, average, state, updates: this.updates }
  }

  report(): ExecutionReport {
    const { meter, stashPeakBytes } = this.#executor
    const steps = this.updates
    const each = (total: number, first: number) => (steps > 1 ? (total - first) / (steps - 1) : total)
    return {
      steps,
      stepMs: each(this.#totalMs, this.#firstMs),
      exposedMs: each(this.#waitedMs, this.#firstWaitedMs),
      devicePeakBytes: meter.peakBytes,
      deviceTakenBytes: openedDevice().peakBytes(),
      hostPeakBytes: this.#server.bytes + stashPeakBytes,
      dropped: this.#server.dropped,
      workers: this.#workerCount,
      lostSteps: this.#lostSteps
    }
  }

  #step(): void {
    const { predictWith } = this.#options
    const rows = this.#rows
    const waited = this.#server.waitedMs
    const before =
      predictWith === 'average' ? this.#executor.score(this.#server.averages, rows, this.updates) : undefined
    this.#server.begin(rows.size, this.updates)
    const start = performance.now()
    const trained = this.#train()
    this.#totalMs += performance.now() - start
    this.#waitedMs += this.#server.waitedMs - waited
    if (this.updates === 0) {
      this.#firstMs = this.#totalMs
      this.#firstWaitedMs = this.#waitedMs
    }
    const score = trained && (before ?? trained)
    if (score !== undefined) {
      this.progress.loss += score.loss
      this.progress.hits += score.hits
      this.progress.inputs += rows.size
    }
    this.updates++
    rows.clear()
  }

  /** @returns undefined if a worker failed: upper layers may have been stepped, the others are in the next step */
  #train(): StepScore | undefined {
    if (this.#pool === undefined) return this.#executor.train(this.#server, this.#rows, { updates: this.updates })
    try {
      return this.#pool.train(this.#executor, this.#server, this.#rows, this.updates)
    } catch (error) {
      if (!(error instanceof WorkerFailedError)) throw error
      this.#lostSteps++
      return undefined
    }
  }
}

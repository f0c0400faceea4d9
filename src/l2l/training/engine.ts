/** Trains a network in one process: executor and parameter server as an engine for `SerialTrainer`. */
import { openedDevice } from '../../device/index.js'
import {
  type AveragingSpec,
  type Blocks,
  commitRows,
  commitSums,
  type Engine,
  type Examples,
  newProgress,
  OptionError,
  type OutcomeKind,
  type PredictWith,
  type Progress,
  type Rest,
  type RuleSpec,
  type Trained
} from '../../learning/index.js'
import { eachInitialBlock } from '../../nn/blocks.js'
import type { NetworkSpec } from '../../nn/spec/network-spec.js'
import type { Model } from '../../nn/types.js'
import { DenseRows, predictsNextToken } from '../dense-rows.js'
import { Executor, outcomeKindOf } from '../executor/executor.js'
import {
  dividesModel,
  type Execution,
  type ExecutorOptions,
  type StepScore,
  WorkerFailedError
} from '../executor/types.js'
import { INITIAL_SEED } from '../network-learner.js'
import { DevicePool } from '../workers/pool.js'
import { type DiskOptions, ParamServer } from './param-server.js'
import type { Hosts } from './partition.js'

export interface L2LEngineOptions extends ExecutorOptions {
  readonly model: Model
  /** Must be blockwise: see `isBlockwise`. */
  readonly rule: RuleSpec
  readonly averaging: AveragingSpec
  /** Inputs per update, ≥ 1. */
  readonly batch: number
  /** `average` takes an extra forward pass; `current` scores the training pass, including dropout. */
  readonly predictWith: PredictWith
  /** Initial weights of each block. @default drawn from a seed */
  readonly initial?: Iterable<Float32Array>
  /** Threads of the parameter server. @default 1 for `l2l-p`, otherwise 0 */
  readonly serverThreads?: number
  /** Number of devices that share the minibatch: see `startWorkers`. @default 1 */
  readonly workers?: number
  /** Keeps weights, average and optimizer state in a layer file, not in memory. For one device. @default in memory */
  readonly disk?: DiskOptions
  /**
   * Divides state, gradients or weights among hosts. Then other devices than this one are those of hosts, one each.
   * @default all are in this process
   */
  readonly hosts?: Hosts
}

/** Time and memory of a run. */
export interface ExecutionReport {
  readonly steps: number
  /** Mean time of all steps except the first, without scoring. */
  readonly stepMs: number
  /** Mean time per step spent waiting for the parameter server. */
  readonly exposedMs: number
  /** Peak bytes of all live buffers, which `deviceMemory` limits; of several devices, those of the one with the most. */
  readonly devicePeakBytes: number
  /**
   * Peak bytes that the backend allocated, including temporary memory of kernels and memory that it does not release.
   */
  readonly deviceTakenBytes: number
  readonly hostPeakBytes: number
  /** Number of layer gradients that were not finite and were dropped. */
  readonly dropped: number
  /** Number of devices at the end of the run. */
  readonly workers: number
  /** Steps that failed because of a device. */
  readonly lostSteps: number
  /** Share of the time that the stages of a pipeline waited for each other, without the first step. @default no pipeline */
  readonly bubble?: number
}

/** @throws OptionError if the hosts have fewer devices than `workers`, or the schedule cannot use them */
function checkDevices({ workers = 1, hosts, schedule }: L2LEngineOptions): void {
  if (workers === 1 || hosts === undefined) return
  if (hosts.level === 3)
    throw new OptionError('zero=3 is for one device, as others need all weights: remove workers, or use zero=2')
  if (dividesModel(schedule))
    throw new OptionError(`schedule ${schedule} does not divide a network among hosts: use l2l-p, or omit zero`)
  if (workers > hosts.count)
    throw new OptionError(`${hosts.count} hosts have a device each, not ${workers}: decrease workers`)
}

/** Threads of the parameter server. */
export function serverThreadsOf({
  serverThreads,
  schedule
}: Pick<L2LEngineOptions, 'serverThreads' | 'schedule'>): number {
  return serverThreads ?? (schedule === 'l2l-p' ? 1 : 0)
}

export class L2LEngine implements Engine {
  readonly progress: Progress
  updates = 0
  readonly #options: L2LEngineOptions
  readonly #outcomeKind: OutcomeKind
  readonly #executor: Executor
  readonly #server: ParamServer
  readonly #rows: DenseRows
  #pool: DevicePool | undefined
  #workerCount = 1
  #bubbles = 0
  #firstBubble = 0
  #othersPeakBytes = 0
  #lostSteps = 0
  #firstMs = 0
  #totalMs = 0
  #firstWaitedMs = 0
  #waitedMs = 0

  /** @throws OptionError */
  constructor(options: L2LEngineOptions) {
    const { model, rule, averaging, workers = 1, disk, hosts } = options
    this.#options = options
    this.#outcomeKind = outcomeKindOf(model, options.predictWith === 'average')
    this.progress = newProgress(this.#outcomeKind)
    this.#executor = new Executor(model, options)
    const threads = serverThreadsOf(options)
    const { initial = eachInitialBlock(model, INITIAL_SEED) } = options
    checkDevices(options)
    this.#server = new ParamServer({ model, initial, rule, averaging, threads, devices: workers, disk, hosts })
    this.#rows = new DenseRows(model, options.classWeights)
    this.#executor.meter.resetPeak()
  }

  /** Starts the configured number of workers. @throws DeviceError */
  async startWorkers(network: NetworkSpec, backend: Execution['backend']): Promise<void> {
    const { workers = 1, hosts } = this.#options
    if (workers === 1) return
    const { schedule, microbatch, stash, layers, bits, deviceMemory, pipeline, frozen, classWeights } = this.#options
    const options = { schedule, microbatch, stash, layers, bits, deviceMemory, pipeline, frozen, classWeights }
    this.#pool = await DevicePool.open({
      network,
      backend,
      executorOptions: options,
      weights: this.#server.shared,
      workers: hosts ? 1 : workers
    })
    if (hosts) await Promise.all(Array.from({ length: workers - 1 }, (_, k) => this.#lend(k + 1, hosts)))
  }

  /** The device of another host joins those of the pool. */
  async #lend(host: number, hosts: Hosts): Promise<void> {
    const init = this.#pool?.prepare()
    if (init === undefined) return
    const name = await hosts.lendDevice(host, init)
    this.#pool?.ready(init.worker, { name, from: `host ${host + 1}` })
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

  /** A layer file that is continued holds the result already. */
  resume(from: Trained): void {
    if (this.#options.disk?.commit === undefined) this.#server.restore(from)
    this.updates = from.updates
  }

  finish(rest: Rest = 'learn'): Trained {
    if (this.#rows.size > 0 && rest === 'learn') this.#step()
    const { parameters, average, state } = this.#server.collect()
    // With a layer file, the last commit follows, and arrays of other hosts are read until `close`.
    if (this.#options.disk === undefined && this.#options.hosts === undefined) this.#server.close()
    this.#executor.close()
    this.#workerCount = this.#pool?.size ?? 1
    this.#othersPeakBytes = Math.max(0, ...(this.#pool?.report() ?? []).map(({ peakBytes = 0 }) => peakBytes))
    this.#pool?.close()
    return { dimension: this.#rows.width, parameters, average, state, updates: this.updates }
  }

  /**
   * Commits what was learned to the layer file, if there is one.
   * @param content state of the run, as JSON
   * @throws LayersWriteError, DamagedLayersError; DivergenceError if numbers are not finite
   */
  commit(content: unknown): void {
    this.#server.commit(content)
  }

  /** The last commit, durable when this returns. Then the layer file is closed. @throws the errors of `commit` */
  close(content: unknown): void {
    this.#server.commit(content, true)
    this.#server.close()
  }

  /**
   * Closes the layer file without another commit, after an error, or the lines to hosts. Commits before are durable, unless one has
   * failed.
   */
  abandon(): void {
    this.#server.close()
  }

  /** For blocks in a layer file, which are not copied, until the next update. */
  snapshot(): Trained {
    const copy = (blocks: Blocks) => (this.#options.disk ? blocks : blocks.map(block => block.slice()))
    const { parameters, average, state } = this.#server.collect()
    const { width } = this.#rows
    return {
      dimension: width,
      parameters: copy(parameters),
      average: copy(average),
      state: copy(state),
      updates: this.updates
    }
  }

  report(): ExecutionReport {
    const { meter, stashPeakBytes } = this.#executor
    const steps = this.updates
    const frozenBytes = (this.#options.frozen ?? []).reduce((sum, block) => sum + (block?.byteLength ?? 0), 0)
    const each = (total: number, first: number) => (steps > 1 ? (total - first) / (steps - 1) : total)
    return {
      steps,
      stepMs: each(this.#totalMs, this.#firstMs),
      exposedMs: each(this.#waitedMs, this.#firstWaitedMs),
      devicePeakBytes: Math.max(meter.peakBytes, this.#othersPeakBytes),
      deviceTakenBytes: openedDevice().peakBytes(),
      hostPeakBytes: this.#server.bytes + frozenBytes + stashPeakBytes,
      dropped: this.#server.dropped,
      workers: this.#workerCount,
      lostSteps: this.#lostSteps,
      bubble: this.#bubbles === 0 ? undefined : each(this.#bubbles, this.#firstBubble)
    }
  }

  #step(): void {
    const { predictWith } = this.#options
    const rows = this.#rows
    const waited = this.#server.waitedMs
    const before =
      predictWith === 'average'
        ? this.#executor.score(this.#server.averages, rows, this.updates, this.#outcomeKind)
        : undefined
    this.#server.begin(rows.size, this.updates)
    const start = performance.now()
    const trained = this.#train()
    this.#totalMs += performance.now() - start
    this.#waitedMs += this.#server.waitedMs - waited
    this.#bubbles += this.#pool?.bubble ?? 0
    if (this.updates === 0) {
      this.#firstBubble = this.#bubbles
      this.#firstMs = this.#totalMs
      this.#firstWaitedMs = this.#waitedMs
    }
    const score = trained && (before ?? trained)
    if (score !== undefined) {
      this.progress.loss += score.loss
      this.progress.hits += score.hits
      this.progress.inputs += rows.size
      const { rowWeights, surplus, size } = rows
      this.progress.surplus += surplus
      const { outcomes } = this.progress
      if (outcomes && score.rows) commitRows(outcomes, score.rows, this.#outcomeKind, rowWeights)
      else if (outcomes) commitSums(outcomes, size, score.loss, score.hits, size + surplus)
    }
    this.updates++
    rows.clear()
  }

  /** @returns undefined if a worker failed; upper layers may have been updated then */
  #train(): StepScore | undefined {
    const { updates } = this
    // Seeds follow from the number of updates, so that a run that is continued draws the same numbers.
    // The weights of the step are sent at its start.
    if (this.#pool && this.#options.hosts) this.#server.settle()
    if (this.#pool === undefined) return this.#executor.train(this.#server, this.#rows, { updates, step: updates })
    try {
      return this.#pool.train(this.#executor, this.#server, this.#rows, this.updates)
    } catch (error) {
      if (!(error instanceof WorkerFailedError)) throw error
      this.#lostSteps++
      return undefined
    }
  }
}

/** Groups of devices that divide a model among this thread and worker threads. */
import { isDeepStrictEqual } from 'node:util'
import { MessageChannel } from 'node:worker_threads'
import { DeviceError } from '../../device/types.js'
import { blockIndices } from '../../nn/blocks.js'
import type { Model } from '../../nn/types.js'
import type { DenseRows } from '../dense-rows.js'
import type { Executor, TrainStep } from '../executor/executor.js'
import { AbortedError, type StagePlace } from '../executor/pipeline.js'
import { cutLayers, recutLayers } from '../executor/pipeline-orders.js'
import type { ExecutorOptions, ParameterStore, Pipeline, StepScore } from '../executor/types.js'
import { StageLine } from './stage-line.js'
import type { StagePorts, WorkerHandle, WorkerMessage, WorkerTask } from './worker-handle.js'

/** What a worker has sent instead of its result. */
export interface Failure {
  readonly worker: WorkerHandle
  readonly message: Extract<WorkerMessage, { readonly kind: 'failed' }>
}

/** Devices that divide a model: this thread, and worker threads. */
export abstract class ModelGroup {
  /** Failures of the last step, by the workers that had been asked for their messages. */
  failures: Failure[] = []
  /** Milliseconds that each device was busy in the last step, this thread's first. */
  busyMs: number[] = []
  /** Share of the last step's time in which devices waited for others. */
  bubble: number | undefined

  /** Submits the task to all workers and executes this thread's part. @returns its score, and how long it has waited for tensors of others */
  protected abstract execute(...step: GroupStep): { readonly score: StepScore; readonly waitedMs: number }

  close(): void {}

  /** Workers beyond this number wait. */
  protected maxWorkers(_executor: Executor): number {
    return Number.POSITIVE_INFINITY
  }

  /**
   * A step of all devices.
   * @param all the same array while none joins or fails
   * @throws AbortedError if a worker has failed; the errors of `Executor.train`
   */
  train(
    executor: Executor,
    all: readonly WorkerHandle[],
    store: ParameterStore,
    rows: DenseRows,
    { attempt, step, updates }: Pick<TrainStep, 'updates'> & { readonly attempt: number; readonly step: number }
  ): StepScore {
    this.failures = []
    const most = this.maxWorkers(executor)
    const workers = all.length > most ? all.slice(0, most) : all
    const start = performance.now()
    let waitedMs = 0
    const receive = (worker: WorkerHandle) => {
      const asked = performance.now()
      const message = worker.receive()
      waitedMs += performance.now() - asked
      if (message.kind !== 'failed') return message
      worker.isBusy = false
      this.failures.push({ worker, message })
      throw new AbortedError()
    }
    const collect = (index: number, lengths?: readonly number[]) => {
      const worker = workers[index]
      const message = receive(worker)
      const gradients = message.kind === 'gradients' ? message.gradients : []
      if (lengths === undefined || isDeepStrictEqual(lengthsOf(gradients), lengths)) return gradients
      const reason = 'its gradients have other lengths than the weights'
      this.failures.push({ worker, message: { kind: 'failed', code: DeviceError.code, reason } })
      throw new AbortedError()
    }
    const task = { attempt, step, updates, firstMicrobatch: 0, rows: rows.copyRange(0, rows.size) }
    const own = this.execute(executor, workers, store, rows, task, collect)
    const others = workers.map(worker => {
      const done = receive(worker)
      worker.isBusy = false
      if (done.kind !== 'done') throw new AbortedError()
      worker.peakBytes = done.peakBytes
      return done.ms
    })
    const totalMs = performance.now() - start
    this.busyMs = [totalMs - waitedMs - own.waitedMs, ...others]
    this.bubble = 1 - this.busyMs.reduce((sum, ms) => sum + ms) / (this.busyMs.length * totalMs)
    return own.score
  }
}

/** What a group executes: `collect` returns a worker's next gradients, of these lengths. @throws AbortedError */
export type GroupStep = [
  executor: Executor,
  workers: readonly WorkerHandle[],
  store: ParameterStore,
  rows: DenseRows,
  task: WorkerTask,
  collect: (worker: number, lengths?: readonly number[]) => readonly Float32Array[]
]

/** A pipeline: this thread is its last stage, and worker threads are those before, in their order. */
export class PipelineStages extends ModelGroup {
  #line: StageLine | undefined
  #workers: readonly WorkerHandle[] = []
  #cut: readonly number[] = []
  /** Measured milliseconds of each stage for each expected one. */
  #slowness: readonly number[] = []

  /** @param adapts whether stages are cut again by their measured speeds, for devices that differ */
  constructor(
    private readonly cells: Int32Array,
    private readonly options: ExecutorOptions['pipeline'],
    private readonly adapts: boolean
  ) {
    super()
  }

  /** Each stage has a layer. */
  protected override maxWorkers({ model }: Executor): number {
    return model.layers.length - 1
  }

  protected override execute(...[executor, workers, store, rows, task, collect]: GroupStep) {
    const { model } = executor
    const isSame = workers.length === this.#workers.length && workers.every((worker, i) => worker === this.#workers[i])
    const ports = isSame ? undefined : this.#connect(workers)
    const stages = workers.length + 1
    const kind = executor.schedule as Pipeline
    const shape = {
      kind,
      stages,
      cut: this.#cutFor(model.layers.length, stages, kind, isSame),
      group: this.options?.group ?? 1
    }
    const inputs = shape.cut.map(first => model.layers[first].input)
    for (const [stage, worker] of workers.entries()) {
      const place: StagePlace = { ...shape, stage }
      const blocks = blocksOf(model, place)
      worker.submit({ ...task, stage: { ...place, blocks, inputs, ports: ports?.[stage] } })
    }
    const line = this.#line as StageLine
    const stage = { ...line.stageOf({ ...shape, stage: workers.length }, task.attempt), collect }
    const score = executor.train(store, rows, { step: task.step, updates: task.updates, stage })
    return { score, waitedMs: line.waitedMs }
  }

  override close(): void {
    this.#line?.close()
  }

  /** Fewer chunks than planned, if there are fewer layers. @param isSame whether the stages have the devices of the last step */
  #cutFor(layers: number, stages: number, kind: Pipeline, isSame: boolean): readonly number[] {
    const { chunks = kind === 'interleaved' ? 2 : 1, layerMs = Array<number>(layers).fill(1) } = this.options ?? {}
    if (!isSame) {
      this.#cut = cutLayers(layerMs, stages * Math.max(1, Math.min(chunks, Math.floor(layers / stages))))
      this.#slowness = []
    } else if (this.adapts && this.busyMs.length === stages) {
      const [own, ...others] = this.busyMs
      const measured = [...others, own].map((ms, stage) => ms / sumAt(layerMs, this.#cut, stage, stages))
      this.#slowness = measured.map((each, stage) => (each + (this.#slowness[stage] ?? each)) / 2)
      if (this.#slowness.every(each => each > 0 && each < Number.POSITIVE_INFINITY))
        this.#cut = recutLayers(this.#cut, layerMs, this.#slowness)
    }
    this.busyMs = []
    return this.#cut
  }

  /** Connects each stage with the next, and the last with the first. @returns the ports of the workers */
  #connect(workers: readonly WorkerHandle[]): StagePorts[] {
    this.#workers = workers
    const lines = Array.from({ length: workers.length + 1 }, () => new MessageChannel())
    const all = lines.map(({ port1 }, stage) => ({
      above: port1,
      below: (lines.at(stage - 1) as MessageChannel).port2
    }))
    this.close()
    const hasEnded = () => workers.some(worker => worker.hasEnded() || worker.hasFailed)
    this.#line = new StageLine(this.cells, all.pop() as StagePorts, hasEnded)
    return all
  }
}

const lengthsOf = (arrays: readonly Float32Array[]) => arrays.map(({ length }) => length)

/** The sum over the layers of a stage. */
function sumAt(values: readonly number[], cut: readonly number[], stage: number, stages: number): number {
  return layersOf(values.length, { cut, stage, stages }).reduce((sum, l) => sum + values[l], 0)
}

function layersOf(layers: number, { cut, stage, stages }: Pick<StagePlace, 'cut' | 'stage' | 'stages'>): number[] {
  const all = Array.from({ length: layers }, (_, l) => l)
  return all.filter(l => cut.findLastIndex(first => first <= l) % stages === stage)
}

/** The blocks of the weights that a stage loads. */
function blocksOf(model: Model, place: StagePlace): readonly number[] {
  const indices = blockIndices(model)
  const own = layersOf(model.layers.length, place)
  const loaded = own.flatMap(l => [l, ...(model.layers[l].shares ?? []).map(({ layer }) => layer)])
  return [...new Set(loaded.flatMap(l => indices[l] ?? []))]
}

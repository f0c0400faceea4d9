/** Entry point of a device worker: executes its share of each minibatch with its own TensorFlow.js instance. */
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { blockIndices } from '../../nn/blocks.js'
import { DenseRows } from '../dense-rows.js'
import { deviceFor, networkModel } from '../execution.js'
import { Executor } from '../executor/executor.js'
import { fillBlock, type ParameterStore } from '../executor/types.js'
import { SharedSignals } from '../training/shared-signals.js'
import { StageLine } from './stage-line.js'
import { TensorDevice } from './tensor.js'
import {
  ABORTED,
  awaitMessage,
  gradientBlockCell,
  gradientsCell,
  messagesCell,
  REDUCED,
  RING_SIZE,
  tasksCell,
  type WorkerInit,
  type WorkerMessage,
  type WorkerTask,
  wakeStages
} from './worker-handle.js'

const { network, backend, executorOptions, weights, gradients: ring, worker, port, ...init } = workerData as WorkerInit
const cells = new Int32Array(init.cells)

const model = networkModel(network)
const indices = blockIndices(model)
const signals =
  weights.signals && new SharedSignals(weights.signals.threads, weights.blocks.length, weights.signals.shared)
const rows = new DenseRows(model)

function reply(message: WorkerMessage): void {
  port.postMessage(message)
  signal()
}

function signal(): void {
  Atomics.add(cells, messagesCell(worker), 1)
  Atomics.notify(cells, messagesCell(worker))
}

/** Milliseconds waited in this step. */
let waitedMs = 0

/** In a pipeline: to the neighbouring stages. */
let line: StageLine | undefined

/** Under tensor parallelism: this device. */
let device: TensorDevice | undefined

/** Reads shared weights and writes gradients to the shared ring. */
class WorkerStore implements ParameterStore {
  #sent = 0

  constructor(private readonly attempt: number) {}

  weights(layer: number): Float32Array {
    const start = performance.now()
    const block = indices[layer] as number
    if (weights.devices) signals?.waitForStep(block)
    else signals?.wait(block)
    waitedMs += performance.now() - start
    return weights.blocks[block]
  }

  pushGradients(layer: number, gradients: readonly Float32Array[]): void {
    const start = performance.now()
    this.#waitForFreeBuffer()
    waitedMs += performance.now() - start
    fillBlock(ring[this.#sent % RING_SIZE], gradients)
    Atomics.store(cells, gradientBlockCell(worker, this.#sent), indices[layer] as number)
    this.#sent++
    Atomics.store(cells, gradientsCell(worker), this.#sent)
    signal()
  }

  /** All workers omit the same layers; the reducing thread reports them to the store. */
  skip(): void {}

  #waitForFreeBuffer(): void {
    for (;;) {
      if (Atomics.load(cells, ABORTED) === this.attempt) throw new Error('the step was aborted')
      const reduced = Atomics.load(cells, REDUCED)
      if (reduced > this.#sent - RING_SIZE) return
      Atomics.wait(cells, REDUCED, reduced)
    }
  }
}

/** Reads shared weights and sends gradients as messages, after the last operation of the device. */
class StageStore extends WorkerStore {
  override pushGradients(_layer: number, gradients: readonly Float32Array[]): void {
    const copies = gradients.map(gradient => gradient.slice())
    const message: WorkerMessage = { kind: 'gradients', gradients: copies }
    port.postMessage(
      message,
      copies.map(({ buffer }) => buffer)
    )
    signal()
  }
}

function execute(executor: Executor, { rows: copy, stage: place, tensor, ...part }: WorkerTask): void {
  const start = performance.now()
  waitedMs = 0
  try {
    rows.load(copy)
    const { meter } = executor
    const before = meter.bytes
    if (place?.ports) {
      line?.close()
      line = new StageLine(cells, place.ports)
    }
    const stage = place && line?.stageOf(place, part.attempt)
    const store = place || tensor ? new StageStore(part.attempt) : new WorkerStore(part.attempt)
    if (tensor) device = TensorDevice.of(device, model, executorOptions, cells, tensor)
    const { loss, hits } =
      tensor && device
        ? device.train(store, rows, part, tensor.shared)
        : executor.train(store, rows, { ...part, stage })
    waitedMs += (stage && line?.waitedMs) ?? (tensor && device?.waitedMs) ?? 0
    const peakBytes = meter.peakBytes - before
    reply({ kind: 'done', loss, hits, ms: performance.now() - start - waitedMs, peakBytes })
  } catch (error) {
    const { code, message } = error as Error & { readonly code?: string }
    if (place || tensor) {
      Atomics.store(cells, ABORTED, part.attempt)
      wakeStages(cells)
    }
    reply({ kind: 'failed', code, reason: message })
  }
}

async function main(): Promise<void> {
  const device = await deviceFor({ backend, deviceMemory: executorOptions.deviceMemory })
  const executor = new Executor(model, executorOptions)
  const parent = parentPort as MessagePort
  parent.postMessage(device.name)
  for (;;) {
    const message = awaitMessage(
      cells,
      tasksCell(worker),
      () => receiveMessageOnPort(port)?.message as WorkerTask | 'stop' | undefined
    )
    if (message === 'stop') break
    execute(executor, message)
  }
  executor.close()
  port.close()
}

void main()

/** Entry of a device worker: takes its part of each minibatch through the model, on a TensorFlow.js of its own. */
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { blockIndices, fillBlock } from '../block-tensors.js'
import { DenseRows } from '../dense-rows.js'
import { deviceFor, networkModel } from '../execution.js'
import { Executor } from '../executor/executor.js'
import type { ParameterStore } from '../executor/types.js'
import { SharedSignals } from '../training/shared-signals.js'
import {
  ABORTED,
  gradientsCell,
  messagesCell,
  REDUCED,
  RING_SIZE,
  tasksCell,
  type WorkerInit,
  type WorkerMessage,
  type WorkerTask
} from './messages.js'

const {
  network,
  backend,
  executorOptions: options,
  weights,
  gradients: places,
  worker,
  port,
  ...init
} = workerData as WorkerInit
const cells = new Int32Array(init.cells)

await deviceFor({ backend, deviceMemory: options.deviceMemory })
const model = networkModel(network)
const executor = new Executor(model, options)
const numbers = blockIndices(model)
const control =
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

/** Lends shared weights, and writes gradients where the one who reduces sees them. */
class WorkerStore implements ParameterStore {
  #sent = 0

  constructor(private readonly step: number) {}

  weights(layer: number): Float32Array {
    const start = performance.now()
    control?.wait(numbers[layer] as number)
    waitedMs += performance.now() - start
    return weights.blocks[numbers[layer] as number]
  }

  pushGradients(_layer: number, gradients: readonly Float32Array[]): void {
    const start = performance.now()
    this.#waitForRoom()
    waitedMs += performance.now() - start
    fillBlock(places[this.#sent % RING_SIZE], gradients)
    this.#sent++
    Atomics.store(cells, gradientsCell(worker), this.#sent)
    signal()
  }

  /** All workers leave out the same layers: the one that reduces says so. */
  skip(): void {}

  #waitForRoom(): void {
    for (;;) {
      if (Atomics.load(cells, ABORTED) === this.step) throw new Error('the step was given up')
      const reduced = Atomics.load(cells, REDUCED)
      if (reduced > this.#sent - RING_SIZE) return
      Atomics.wait(cells, REDUCED, reduced)
    }
  }
}

function work({ size, values, labels, ...part }: WorkerTask): void {
  const start = performance.now()
  waitedMs = 0
  try {
    rows.load(values, labels, size)
    const { loss, hits } = executor.train(new WorkerStore(part.step), rows, part)
    reply({ kind: 'done', loss, hits, ms: performance.now() - start - waitedMs })
  } catch (error) {
    const { code, message } = error as Error & { readonly code?: string }
    reply({ kind: 'failed', code, reason: message })
  }
}

const ready = parentPort as MessagePort
ready.postMessage('ready')
let seen = 0
for (;;) {
  Atomics.wait(cells, tasksCell(worker), seen)
  const message = receiveMessageOnPort(port)?.message as WorkerTask | 'stop' | undefined
  if (message === undefined) {
    seen = Atomics.load(cells, tasksCell(worker))
    continue
  }
  if (message === 'stop') break
  work(message)
}
executor.close()
port.close()

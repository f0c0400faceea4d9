/**
 * Speed of layer-to-layer execution compared with conventional training with recomputation, conventional training in
 * the same device memory, and PyTorch on the same cores. CPU time, the minimum over interleaved rounds.
 */
import { availableParallelism } from 'node:os'
import * as tf from '#tfjs'
import { DenseRows } from '../../src/l2l/dense-rows.js'
import { Executor } from '../../src/l2l/executor/executor.js'
import { deviceMeter } from '../../src/l2l/executor/meter.js'
import { SavedActivations } from '../../src/l2l/executor/saved-activations.js'
import { createStash } from '../../src/l2l/executor/stash.js'
import {
  GradientSum,
  load,
  lossAndGradient,
  microbatches,
  type StepContext,
  trainingPass
} from '../../src/l2l/executor/step.js'
import type { ExecutorOptions } from '../../src/l2l/executor/types.js'
import { BlockStore } from '../../src/l2l/parameter-store.js'
import { L2LEngine } from '../../src/l2l/training/engine.js'
import { zeros } from '../../src/learner/index.js'
import { initialBlocks, layoutOf } from '../../src/nn/blocks.js'
import type { Model } from '../../src/nn/types.js'
import { gpt, HEADS, type Shape, tokens, VOCABULARY } from './l2l-model.js'
import { startTorch } from './l2l-torch.js'
import type { Row } from './row.js'

const LAYERS = 8
const TORCH_SHAPE: Shape = { width: 256, length: 64, batch: 32, microbatch: 32 }
const BUDGET_SHAPE: Shape = { width: 128, length: 64, batch: 32, microbatch: 16 }
const ROUNDS = 8

export async function* speed(backend: string): AsyncGenerator<Row> {
  yield* compareWithTorch(backend)
  yield* compareInOneBudget(backend)
}

/** CPU milliseconds of one call. */
function cpuMs(work: () => void): number {
  const before = process.cpuUsage()
  work()
  return process.cpuUsage(before).user / 1000
}

/**
 * One minibatch forward and backward without an optimizer: by the executor, by a checkpointing baseline, and by
 * PyTorch.
 */
async function* compareWithTorch(backend: string): AsyncGenerator<Row> {
  const shape = TORCH_SHAPE
  const model = gpt(LAYERS, shape)
  const parameters = initialBlocks(model, 1)
  const gradient = zeros(layoutOf(model))
  const batch = new DenseRows(model)
  const rows = tokens(shape, shape.batch)
  for (let row = 0; row < rows.size; row++) batch.append(rows, row)
  const store = new BlockStore(model, parameters, gradient)
  const executor = new Executor(model, { schedule: 'l2l-p', microbatch: shape.microbatch })
  const threads = backend === 'tensorflow' ? availableParallelism() : 1
  const torch = await startTorch({ ...shape, layers: LAYERS, heads: HEADS, vocabulary: VOCABULARY, threads })
  let [layerwise, checkpointed, inTorch] = [1, 1, 1].map(() => Number.POSITIVE_INFINITY)
  for (let round = 0; round < ROUNDS; round++) {
    layerwise = Math.min(
      layerwise,
      cpuMs(() => executor.train(store, batch))
    )
    checkpointed = Math.min(
      checkpointed,
      cpuMs(() => trainWithCheckpoints(model, store, batch))
    )
    if (torch !== undefined) inTorch = Math.min(inTorch, await torch.stepCpuMs())
  }
  torch?.stop()
  executor.close()
  const details = { backend, layers: LAYERS, ...shape, stepCpuMs: layerwise, checkpointed }
  const recomputation = 'l2l-p relative to a baseline with recomputation'
  yield { name: recomputation, value: layerwise / checkpointed, unit: 'times', target: { most: 1.05 }, details }
  if (torch === undefined) {
    process.stderr.write('bench: comparison with PyTorch skipped: python3 (or ADMB_PYTHON) has no torch\n')
    return
  }
  const name = 'speed of l2l-p relative to PyTorch with checkpointing'
  yield {
    name,
    value: inTorch / layerwise,
    unit: 'times',
    target: { least: 1 },
    details: { ...details, torch: inTorch, threads }
  }
}

/** Conventional training with checkpointing: everything is on the device, only layer inputs are saved. */
function trainWithCheckpoints(model: Model, store: BlockStore, batch: DenseRows): void {
  const stash = createStash('device', 'float32')
  const meter = deviceMeter()
  const score = { loss: 0, hits: 0 }
  const context: StepContext = {
    model,
    store,
    batch,
    microbatch: batch.size,
    step: 0,
    firstMicrobatch: 0,
    order: [...model.layers.keys()],
    precision: 'float32',
    resident: new Set(),
    deviceOutputs: new Set(),
    meter,
    score,
    saves: new Set(),
    offloads: new Set(),
    unstashed: new Set(),
    outputs: stash,
    saved: new SavedActivations(stash),
    gradients: stash,
    shared: new Map()
  }
  tf.tidy(() => {
    const weights = model.layers.map((_, l) => load(context, l))
    for (const [microbatch, rows] of microbatches(context).entries()) {
      const inputs = [batch.inputs(...rows)]
      for (const [l, layer] of model.layers.entries()) {
        inputs.push(layer.forward(inputs[l], weights[l], trainingPass(context, l, microbatch)))
      }
      let dy = lossAndGradient(model.head, context, rows, inputs.pop() as tf.Tensor)
      for (let l = model.layers.length - 1; l >= 0; l--) {
        const { dx, dWeights } = model.layers[l].vjp(inputs[l], weights[l], dy, trainingPass(context, l, microbatch))
        tf.dispose([inputs[l], dy])
        const sum = new GradientSum()
        sum.add(dWeights)
        sum.flush(context, l)
        dy = dx ?? dy
      }
    }
  })
}

/** Training with Adam in a memory limit in which the baseline's batch must shrink to an eighth or less. */
function* compareInOneBudget(backend: string): Generator<Row> {
  const model = gpt(LAYERS, BUDGET_SHAPE)
  for (const small of [4, 2]) {
    const baseline = new Trainer(model, { ...BUDGET_SHAPE, batch: small }, { schedule: 'baseline' })
    baseline.step()
    const deviceMemory = baseline.deviceBytes
    const { microbatch } = BUDGET_SHAPE
    const layerwise = new Trainer(model, BUDGET_SHAPE, { schedule: 'l2l-p', microbatch, stash: 'host', deviceMemory })
    for (let round = 0; round < ROUNDS; round++) {
      // The same number of samples for both.
      for (let part = 0; part < BUDGET_SHAPE.batch / small; part++) baseline.step()
      layerwise.step()
    }
    const details = {
      backend,
      layers: LAYERS,
      ...BUDGET_SHAPE,
      deviceMemory,
      baselineBatch: small,
      baseline: baseline.inputsPerSecond,
      layerwise: layerwise.inputsPerSecond
    }
    baseline.finish()
    layerwise.finish()
    yield {
      name: `one budget, training: inputs per second, l2l-p relative to baseline with batch ${small}`,
      value: details.layerwise / details.baseline,
      unit: 'times',
      target: { least: 1.4 },
      details
    }
  }
}

export class Trainer {
  #leastMs = Number.POSITIVE_INFINITY
  readonly #engine: L2LEngine
  readonly #shape: Shape

  constructor(model: Model, shape: Shape, options: ExecutorOptions) {
    this.#shape = shape
    this.#engine = new L2LEngine({
      model,
      rule: { name: 'adam' },
      averaging: { name: 'tail' },
      batch: shape.batch,
      predictWith: 'current',
      ...options
    })
  }

  step(): void {
    const rows = tokens(this.#shape, this.#shape.batch)
    this.#leastMs = Math.min(
      this.#leastMs,
      cpuMs(() => this.#engine.learn(rows))
    )
  }

  get deviceBytes(): number {
    return this.#engine.report().devicePeakBytes
  }

  get inputsPerSecond(): number {
    return (1000 * this.#shape.batch) / this.#leastMs
  }

  finish(): void {
    this.#engine.finish('drop')
  }
}

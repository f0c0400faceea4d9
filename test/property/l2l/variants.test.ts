/** Stochastic depth. */
import { deepEqual, equal, notDeepEqual, ok, throws } from 'node:assert/strict'
import { openDevice } from '../../../src/device/index.js'
import { DenseRows } from '../../../src/l2l/dense-rows.js'
import { Executor } from '../../../src/l2l/executor/executor.js'
import { BlockStore, type ExecutorOptions, STASH_LOCATIONS } from '../../../src/l2l/executor/types.js'
import { NetworkLearner } from '../../../src/l2l/network-learner.js'
import { L2LEngine } from '../../../src/l2l/training/engine.js'
import { BatchEngine, createAveraging, createRule, defaultAveraging, zeros } from '../../../src/learning/index.js'
import { initialBlocks, layersWithBlocks, layoutOf } from '../../../src/nn/blocks.js'
import { createModel } from '../../../src/nn/create-model.js'
import { trainingOrder } from '../../../src/nn/layer-order.js'
import { parseModel } from '../../../src/nn/spec/model-spec.js'
import type { Layer, Model } from '../../../src/nn/types.js'
import { randomRows } from '../../support/l2l/dense-model.js'
import { arraysOf, difference, numbersOf, withTensors } from '../../support/l2l/layers.js'
import { layersWith } from '../../support/layer-plans.js'

function gpt(options: object): Model {
  const spec = parseModel({ model: 'gpt', width: 8, heads: 2, ...options }, 'test')
  return createModel(spec, { kind: 'tokens', shape: [5], vocabulary: 7 }, { kind: 'next-token' })
}

function rowsOf(model: Model, size: number): DenseRows {
  const batch = new DenseRows(model)
  const examples = randomRows(model, size)
  for (let row = 0; row < size; row++) batch.append(examples, row)
  return batch
}

interface StepLog {
  readonly losses: number[]
  readonly sums: Float32Array[][]
  /** Layers that were loaded in each step. */
  readonly loaded: number[][]
  readonly deviceBytes: number
}

/** Runs several steps with the same weights. */
function stepsOf(model: Model, options: ExecutorOptions, steps = 6): StepLog {
  const executor = new Executor(model, options)
  const parameters = initialBlocks(model, 1)
  const batch = rowsOf(model, 5)
  const log: StepLog = { losses: [], sums: [], loaded: [], deviceBytes: 0 }
  const before = executor.meter.bytes
  executor.meter.resetPeak()
  for (let step = 0; step < steps; step++) {
    const sum = zeros(layoutOf(model))
    const store = new BlockStore(model, parameters, sum)
    const loaded = new Set<number>()
    const spy = {
      weights: (layer: number) => {
        loaded.add(layer)
        return store.weights(layer)
      },
      pushGradients: (layer: number, gradients: readonly Float32Array[]) => store.pushGradients(layer, gradients),
      skip: (layer: number) => store.skip(layer)
    }
    log.losses.push(executor.train(spy, batch).loss)
    log.sums.push(sum)
    log.loaded.push([...loaded].sort((a, b) => a - b))
  }
  equal(executor.meter.bytes, before)
  executor.close()
  return { ...log, deviceBytes: executor.meter.peakBytes - before }
}

for (const device of ['cpu', 'wasm'] as const) {
  describe(`stochastic depth on ${device}`, () => {
    before(() => openDevice(device))
    const model = gpt({ layers: 3, skip: 0.6, dropout: 0.2 })

    it('skips the same layers under every schedule without loading them', () => {
      const expected = stepsOf(model, { schedule: 'baseline-ag', microbatch: 2 })
      for (const schedule of ['l2l', 'l2l-p'] as const) {
        for (const stash of STASH_LOCATIONS) {
          const log = stepsOf(model, {
            schedule,
            microbatch: 2,
            stash,
            layers: layersWith([3], { activations: 'device' })
          })
          deepEqual({ ...log, deviceBytes: 0 }, { ...expected, deviceBytes: 0 })
        }
      }
      const names = layersWithBlocks(model).map(({ name }) => name)
      for (const [step, order] of expected.loaded.entries()) {
        deepEqual(
          order,
          trainingOrder(model, step, 0).filter(l => model.layers[l].weights.length > 0)
        )
        for (const [k, block] of expected.sums[step].entries()) {
          const isLoaded = order.some(l => model.layers[l].name === names[k])
          equal(
            block.some(v => v !== 0),
            isLoaded,
            names[k]
          )
        }
      }
      notDeepEqual(expected.loaded[0], expected.loaded[1])
    })

    it('predicts with all layers, equal to the training average', () => {
      const layer = gpt({ layers: 1, skip: 0.25 }).layers.find(({ kind }) => kind === 'mlp') as Layer
      const at = { layer, batch: 2, pass: { training: true, seed: 1 }, seed: 3 }
      const arrays = arraysOf(at)
      const [trained, inference] = [true, false].map(training =>
        withTensors(at, arrays, (x, weights) => {
          const y = layer.forward(x, weights, { training, seed: 1 })
          const numbers = numbersOf(y)
          y.dispose()
          return numbers
        })
      )
      const mean = trained.map((y, i) => 0.75 * y + 0.25 * arrays.x[i])
      ok(difference([mean], [inference]) < 1e-6)
    })
  })
}

describe('stochastic depth', () => {
  before(() => openDevice('cpu'))

  it('skips layers at the configured rate, in proportion to depth', () => {
    const model = gpt({ layers: 4, skip: 0.4 })
    const steps = 4000
    const counts = model.layers.map(() => 0)
    for (let step = 0; step < steps; step++) for (const l of trainingOrder(model, step, 0)) counts[l]++
    model.layers.forEach(({ skipRate = 0, name }, l) => {
      ok(Math.abs(1 - counts[l] / steps - skipRate) < 0.04, `${name}: ${counts[l]} of ${steps}`)
    })
    const rates = model.layers.filter(({ kind }) => kind === 'attention').map(({ skipRate }) => skipRate)
    deepEqual(rates, [0.1, 0.2, 0.30000000000000004, 0.4])
  })

  it('updates skipped layers with a zero gradient, like batch training', () => {
    const model = gpt({ layers: 2, skip: 0.5 })
    const examples = randomRows(model, 12)
    const rule = { name: 'adam' } as const
    const common = { batch: 3, predictWith: 'current' } as const
    const learner = new NetworkLearner(model, { schedule: 'l2l' })
    const parts = { learnerFor: () => learner, rule: createRule(rule), averaging: createAveraging() }
    const [plain, layerwise] = [
      new BatchEngine({ ...common, ...parts, dimension: 6, dimensionLimit: 6 }),
      new L2LEngine({ ...common, model, rule, averaging: defaultAveraging, schedule: 'l2l' })
    ].map(engine => {
      engine.learn(examples)
      const { parameters, state } = engine.finish()
      return [...parameters, ...state].map(block => [...block])
    })
    deepEqual(layerwise, plain)
  })

  it('requires a shortcut and no norm after it', () => {
    const of = (layer: object) => ({
      layers: [
        { kind: 'embedding', width: 4 },
        { kind: 'mlp', inner: 4, ...layer }
      ]
    })
    const sample = { kind: 'tokens', shape: [3], vocabulary: 5 } as const
    for (const bad of [{ shortcut: false }, { norm: 'after' }]) {
      const spec = parseModel(of({ ...bad, skip: 0.5 }), 'test')
      throws(
        () => createModel(spec, sample, { kind: 'next-token' }),
        /layer mlp1 cannot be skipped: it needs a shortcut/
      )
    }
  })
})

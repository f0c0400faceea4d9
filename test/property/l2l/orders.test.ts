/** Skipped and added layers under all schedules, and the calls that the parameter store receives. */
import { deepEqual, equal, notDeepEqual, ok, throws } from 'node:assert/strict'
import fc from 'fast-check'
import { openDevice } from '../../../src/device/index.js'
import { DenseRows } from '../../../src/l2l/dense-rows.js'
import { Executor } from '../../../src/l2l/executor/executor.js'
import { BlockStore, type ExecutorOptions, STASH_LOCATIONS } from '../../../src/l2l/executor/types.js'
import { NetworkLearner } from '../../../src/l2l/network-learner.js'
import { L2LEngine } from '../../../src/l2l/training/engine.js'
import {
  BatchEngine,
  createAveraging,
  createRule,
  defaultAveraging,
  learnerAfter,
  zeros
} from '../../../src/learning/index.js'
import { initialBlocks, layersWithBlocks, layoutOf } from '../../../src/nn/blocks.js'
import { createModel } from '../../../src/nn/create-model.js'
import { servingOrder, trainingOrder } from '../../../src/nn/layer-order.js'
import { parseModel } from '../../../src/nn/spec/model-spec.js'
import type { NetworkSpec } from '../../../src/nn/spec/network-spec.js'
import type { Model } from '../../../src/nn/types.js'
import { randomRows } from '../../support/l2l/dense-model.js'
import { layerPlans } from '../../support/layer-plans.js'
import { share } from '../../support/runs.js'

const ROWS = 5
const text = { kind: 'tokens', shape: [5], vocabulary: 7 } as const

function specOf(model: object): NetworkSpec {
  return { layers: parseModel(model, 'test'), sample: text, target: { kind: 'next-token' } }
}

function modelOf(model: object): Model {
  const { layers, sample, target } = specOf(model)
  return createModel(layers, sample, target)
}

function rowsOf(model: Model, size = ROWS): DenseRows {
  const batch = new DenseRows(model)
  const examples = randomRows(model, size)
  for (let row = 0; row < size; row++) batch.append(examples, row)
  return batch
}

/** Runs one step. @returns its result and the store's calls in order */
function stepOf(model: Model, options: ExecutorOptions, step: number, updates: number) {
  const executor = new Executor(model, options)
  const sum = zeros(layoutOf(model))
  const store = new BlockStore(model, initialBlocks(model, 1), sum)
  const [loaded, pushed, skipped] = [new Set<number>(), [] as number[], [] as number[]]
  const spy = {
    weights(layer: number) {
      loaded.add(layer)
      return store.weights(layer)
    },
    pushGradients(layer: number, gradients: readonly Float32Array[]) {
      pushed.push(layer)
      store.pushGradients(layer, gradients)
    },
    skip(layer: number) {
      skipped.push(layer)
    }
  }
  const before = executor.meter.bytes
  const { loss, hits } = executor.train(spy, rowsOf(model), { step, updates })
  equal(executor.meter.bytes, before, 'nothing is left on the device')
  executor.close()
  return { loss, hits, sum, loaded: [...loaded].sort((a, b) => a - b), pushed, skipped }
}

/** Layers of one width, any of which can be skipped or added later. */
const varying = fc.array(
  fc.record({
    kind: fc.constantFrom('attention', 'mlp'),
    skip: fc.constantFrom(0, 0.5),
    from: fc.constantFrom(undefined, 2, 5),
    dropout: fc.constantFrom(0, 0.3)
  }),
  { minLength: 1, maxLength: 5 }
)
type Varying = typeof varying extends fc.Arbitrary<infer T> ? T : never

function varyingModel(blocks: Varying): object {
  const layers = blocks.map(({ kind, ...rest }) => ({
    kind,
    ...(kind === 'attention' ? { heads: 2 } : { inner: 6 }),
    ...rest
  }))
  return { layers: [{ kind: 'embedding', width: 4 }, ...layers, { kind: 'layer-norm' }] }
}

const runs = fc.record({
  blocks: varying,
  step: fc.integer({ min: 0, max: 1000 }),
  updates: fc.constantFrom(0, 2, 3, 5, 100),
  microbatch: fc.integer({ min: 1, max: ROWS }),
  stash: fc.constantFrom(...STASH_LOCATIONS),
  layers: layerPlans(8)
})

for (const device of ['cpu', 'wasm'] as const) {
  describe(`varying layers on ${device}`, () => {
    before(() => openDevice(device))

    it('gives the same gradients under all schedules, and reports each layer to the store once', () => {
      fc.assert(
        fc.property(runs, ({ blocks, step, updates, microbatch, ...options }) => {
          const model = modelOf(varyingModel(blocks))
          const order = trainingOrder(model, step, updates).filter(l => model.layers[l].weights.length > 0)
          const plain = stepOf(model, { schedule: 'baseline-ag', microbatch }, step, updates)
          const whole = stepOf(model, { schedule: 'baseline' }, step, updates)
          const others = (['l2l', 'l2l-p'] as const).map(schedule =>
            stepOf(model, { schedule, microbatch, ...options }, step, updates)
          )
          for (const way of others) deepEqual(way, plain)
          for (const { loaded, pushed, skipped } of [plain, whole]) {
            deepEqual(pushed, [...order].reverse())
            deepEqual(loaded, [...order].sort())
            const all = layersWithBlocks(model).map(layer => model.layers.indexOf(layer))
            deepEqual(
              [...pushed, ...skipped].sort((a, b) => a - b),
              all
            )
          }
        }),
        { numRuns: share(40) }
      )
    })

    it('equals a model with the same layers', () => {
      fc.assert(
        fc.property(runs, ({ blocks, step, updates, microbatch }) => {
          const model = modelOf(varyingModel(blocks.map(block => ({ ...block, skip: 0, dropout: 0 }))))
          const at = trainingOrder(model, step, updates)
          const fixedLayers = at.map(l => ({ ...model.layers[l], from: undefined }))
          const plain: Model = { ...model, layers: fixedLayers }
          const blocksOf = (names: readonly string[]) => {
            const initial = initialBlocks(model, 1)
            return names.map(name => initial[layersWithBlocks(model).findIndex(layer => layer.name === name)])
          }
          const names = layersWithBlocks(plain).map(({ name }) => name)
          const sum = zeros(layoutOf(plain))
          const { loss } = new Executor(plain, { schedule: 'baseline-ag', microbatch }).train(
            new BlockStore(plain, blocksOf(names), sum),
            rowsOf(plain)
          )
          const actual = stepOf(model, { schedule: 'l2l-p', microbatch }, step, updates)
          equal(actual.loss, loss)
          for (const [k, { name }] of layersWithBlocks(model).entries()) {
            const index = names.indexOf(name)
            deepEqual(actual.sum[k], index < 0 ? new Float32Array(actual.sum[k].length) : sum[index], name)
          }
        }),
        { numRuns: share(20) }
      )
    })
  })
}

describe('layer orders', () => {
  const model = modelOf({ model: 'gpt', width: 4, heads: 2, layers: 3 })

  it('of training omit layers at their rate, the same ones for the same step', () => {
    const skipping = modelOf({ model: 'gpt', width: 4, heads: 2, layers: 3, skip: 0.6 })
    const steps = 6000
    const counts = [...skipping.layers.keys()].map(() => 0)
    for (let step = 0; step < steps; step++) {
      const order = trainingOrder(skipping, step, 0)
      deepEqual(order, trainingOrder(skipping, step, 0))
      for (const l of order) counts[l]++
    }
    for (const [l, { skipRate = 0 }] of skipping.layers.entries())
      ok(Math.abs(counts[l] / steps - (1 - skipRate)) < 0.03, `${counts}`)
  })

  it('for prediction are as declared, without layers added later', () => {
    deepEqual(servingOrder(model, 0), [...model.layers.keys()])
    const growing = modelOf({ model: 'gpt', width: 4, heads: 2, layers: 3, grow: 10, skip: 0.9 })
    deepEqual(servingOrder(growing, 9), [0, 1, 2, 7, 8])
    deepEqual(servingOrder(growing, 10), [0, 1, 2, 3, 4, 7, 8])
    deepEqual(servingOrder(growing, 20), [...growing.layers.keys()])
  })
})

describe('a model file', () => {
  const dense = (units: number, more: object = {}) => ({ kind: 'dense', units, ...more })
  const rejected: [layers: object[], message: RegExp][] = [
    [[dense(8, { name: 'wide', from: 5 }), dense(4)], /layer wide is the first layer and cannot have a from/],
    [
      [dense(8), dense(4, { name: 'narrow', from: 5 }), dense(8)],
      /layer narrow cannot be added after 5 updates: without it layer dense2 gets 8, expected 4/
    ],
    [
      [dense(8), dense(4, { name: 'last', from: 5 })],
      /layer last cannot be added after 5 updates: without it layer output gets 8, expected 4/
    ],
    [[dense(8, { from: -1 })], /layers\.0\.from: .*\(given: -1\)/]
  ]

  it('is rejected if shapes do not match, with the layer and both shapes', () => {
    for (const [layers, message] of rejected) {
      const sample = { kind: 'features', shape: [6] } as const
      throws(() => createModel(parseModel({ layers }, 'test'), sample, { kind: 'class', classes: 3 }), {
        name: 'ModelError',
        message
      })
    }
    throws(
      () => modelOf({ layers: [{ kind: 'embedding', width: 4, from: 1 }, { kind: 'layer-norm' }] }),
      /is the first layer/
    )
  })

  it('may add several layers at once that only fit together', () => {
    const layers = [dense(8), dense(4, { from: 5 }), dense(8, { from: 5 })]
    const sample = { kind: 'features', shape: [6] } as const
    const model = createModel(parseModel({ layers }, 'test'), sample, { kind: 'class', classes: 3 })
    deepEqual(servingOrder(model, 4), [0, 3])
  })
})

describe('a model that grows', () => {
  before(() => openDevice('cpu'))
  const model = modelOf({ model: 'gpt', width: 8, heads: 2, layers: 3, grow: 6, dropout: 0.1 })
  const late = layersWithBlocks(model).flatMap(({ name }, k) => (name.startsWith('block2') ? [k] : []))
  const first = new NetworkLearner(model, {}).initial()
  const same = (a: readonly Float32Array[], b: readonly Float32Array[]) =>
    late.every(k => a[k].every((v, i) => v === b[k][i]))

  for (const workers of [1, 2]) {
    it(`trains each layer from its addition on, and reduces the loss, with ${workers} workers`, async () => {
      const rule = { name: 'adam', step: 0.01 } as const
      const options = { model, rule, averaging: defaultAveraging, batch: 8, schedule: 'l2l-p', microbatch: 2 } as const
      const run = async (rows: number) => {
        const engine = new L2LEngine({ ...options, predictWith: 'current', workers })
        await engine.startWorkers(specOf({ model: 'gpt', width: 8, heads: 2, layers: 3, grow: 6, dropout: 0.1 }), 'cpu')
        const examples = randomRows(model, 8)
        const losses: number[] = []
        for (let step = 0; step < rows / 8; step++) {
          const before = engine.progress.loss
          engine.learn(examples)
          losses.push((engine.progress.loss - before) / 8)
        }
        const { parameters, average } = engine.finish()
        return { parameters, average, losses }
      }
      const early = await run(8 * 12)
      ok(same(early.parameters, first) && same(early.average, first), 'layers not yet added are unchanged')
      const grown = await run(8 * 40)
      ok(!same(grown.parameters, first) && !same(grown.average, first))
      const mean = (losses: readonly number[]) => losses.reduce((sum, loss) => sum + loss, 0) / losses.length
      ok(mean(grown.losses.slice(-8)) < 0.85 * mean(grown.losses.slice(0, 4)), `${grown.losses}`)
    })
  }

  it('gives the same bits as batch training, scored with the layers present', () => {
    const examples = randomRows(model, 60)
    const rule = { name: 'adam' } as const
    for (const predictWith of ['average', 'current'] as const) {
      const learner = new NetworkLearner(model, { schedule: 'l2l' })
      const parts = { learnerFor: () => learner, rule: createRule(rule), averaging: createAveraging() }
      const engines = [
        new BatchEngine({ batch: 3, predictWith, ...parts, dimension: 6, dimensionLimit: 6 }),
        new L2LEngine({ batch: 3, predictWith, model, rule, averaging: defaultAveraging, schedule: 'l2l' })
      ]
      const [plain, layerwise] = engines.map(engine => {
        engine.learn(examples)
        const { parameters, average, state } = engine.finish()
        return { blocks: [...parameters, ...average, ...state].map(block => [...block]), loss: engine.progress.loss }
      })
      deepEqual(layerwise.blocks, plain.blocks)
      // With `current`, the scored pass has dropout.
      if (predictWith === 'average') ok(Math.abs(layerwise.loss / plain.loss - 1) < 1e-5)
    }
  })

  it('scores and predicts with the layers present when its parameters were made', () => {
    const learner = new NetworkLearner(model, {})
    const examples = randomRows(model, 4)
    const score = (updates: number) => {
      const into = { loss: 0, hits: 0 }
      learnerAfter(learner, updates).score(first, examples, 0, 4, into)
      return { loss: into.loss, scores: learnerAfter(learner, updates).predict(first, examples, 0, 4) }
    }
    const [small, middle, large] = [5, 6, 12].map(score)
    deepEqual(score(0), small)
    deepEqual(score(11), middle)
    deepEqual(score(1e9), large)
    notDeepEqual(small, middle)
    notDeepEqual(middle, large)
    const two = modelOf({ model: 'gpt', width: 8, heads: 2, layers: 2, dropout: 0.1 })
    const blocks = layersWithBlocks(two).map(
      ({ name }) => first[layersWithBlocks(model).findIndex(l => l.name === name)]
    )
    const into = { loss: 0, hits: 0 }
    new NetworkLearner(two, {}).score(blocks, examples, 0, 4, into)
    equal(into.loss, middle.loss)
  })

  it('does not change outputs when a layer with gain 0 is added', () => {
    const layers = [
      { kind: 'embedding', width: 4 },
      { kind: 'mlp', inner: 4 },
      { kind: 'mlp', inner: 4, from: 3, gain: 0 }
    ]
    const withGain0 = modelOf({ layers })
    const learner = new NetworkLearner(withGain0, {})
    const [before, after] = [2, 3].map(updates =>
      learner.after(updates).predict(learner.initial(), randomRows(withGain0, 3), 0, 3)
    )
    deepEqual(after, before)
    const sum = zeros(learner.layout)
    learner.after(3).addGradient(learner.initial(), randomRows(withGain0, 3), 0, 3, sum)
    ok(sum[2].some(v => v !== 0))
  })
})

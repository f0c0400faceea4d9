/** Networks of which only some weights are trained: frozen layers, and adapters (LoRA). */
import { deepEqual, equal, ok, throws } from 'node:assert/strict'
import fc from 'fast-check'
import * as tf from '#tfjs'
import { DenseRows } from '../../../src/l2l/dense-rows.js'
import { frozenOf, networkModel, wholeBlocks, wholeNetwork } from '../../../src/l2l/execution.js'
import { Executor } from '../../../src/l2l/executor/executor.js'
import { BlockStore, type ExecutorOptions, STASH_LOCATIONS } from '../../../src/l2l/executor/types.js'
import { planFor } from '../../../src/l2l/planning/planner.js'
import { profileModel } from '../../../src/l2l/planning/profile.js'
import { L2LEngine } from '../../../src/l2l/training/engine.js'
import { type Blocks, zeros } from '../../../src/learning/index.js'
import { layersWithBlocks, layoutOf } from '../../../src/nn/blocks.js'
import { uniforms } from '../../../src/nn/random.js'
import { parseModel } from '../../../src/nn/spec/model-spec.js'
import type { NetworkSpec, TuningSpec } from '../../../src/nn/spec/network-spec.js'
import { type Model, sizeOf, totalSize } from '../../../src/nn/types.js'
import { randomRows } from '../../support/l2l/dense-model.js'
import { BACKENDS, difference, runs, useBackend } from '../../support/l2l/layers.js'
import { layerPlans, WHOLE_SCHEDULES } from '../../support/layer-plans.js'

const sample = { kind: 'tokens', shape: [6], vocabulary: 11, padding: 0, separator: 1 } as const
const SHAPES = { bert: {}, gpt2: {}, llama: { keyHeads: 1, tied: true } } as const

function specOf(model: keyof typeof SHAPES, tuning: TuningSpec): NetworkSpec {
  const layers = parseModel({ model, width: 8, layers: 2, heads: 2, inner: 12, ...SHAPES[model] }, 'test')
  const target = model === 'bert' ? ({ kind: 'class', classes: 3 } as const) : ({ kind: 'next-token' } as const)
  return { layers, sample, target, tuning }
}

const loras = fc.record({
  rank: fc.integer({ min: 1, max: 3 }),
  alpha: fc.constantFrom(1, 4),
  layers: fc.constantFrom('attention', 'mlp', 'all')
} as const)
const freezes = fc.subarray(['embeddings', 'layers:0', 'block1.mlp', 'norm'], { minLength: 1 })
const tunings: fc.Arbitrary<TuningSpec> = fc.oneof(
  fc.record({ lora: loras, heads: fc.constantFrom([], ['output'], ['pooler', 'output']) }),
  fc.record({ lora: loras, freeze: fc.constant(['layers:0']) }),
  fc.record({ freeze: freezes })
)
const executions = fc.record({
  schedule: fc.constantFrom(...WHOLE_SCHEDULES.filter(name => name !== 'baseline')),
  microbatch: fc.integer({ min: 1, max: 5 }),
  layers: layerPlans(4)
})

/** Blocks of random numbers, so that no B is 0. */
function randomBlocks(model: Model): Float32Array[] {
  const random = uniforms(7)
  return layoutOf(model).blocks.map(({ length }) => Float32Array.from({ length }, () => 0.6 * random() - 0.3))
}

function gradientsOf(model: Model, parameters: Blocks, options: ExecutorOptions) {
  const executor = new Executor(model, options)
  const gradients = zeros(layoutOf(model))
  const batch = new DenseRows(model)
  const examples = randomRows(model, 5)
  for (let row = 0; row < 5; row++) batch.append(examples, row)
  const before = tf.memory().numTensors
  const { loss } = executor.train(new BlockStore(model, parameters, gradients), batch)
  equal(tf.memory().numTensors, before)
  executor.close()
  return { loss, gradients }
}

for (const device of BACKENDS) {
  describe(`partly trained networks on ${device}`, () => {
    before(() => useBackend(device))

    it('have the gradients of the whole network with the adapters added, by the chain rule', () => {
      fc.assert(
        fc.property(fc.constantFrom('bert', 'gpt2', 'llama'), tunings, executions, (name, tuning, execution) => {
          const spec = specOf(name, name === 'bert' ? tuning : { ...tuning, heads: [] })
          const model = networkModel(spec)
          const blocks = randomBlocks(model)
          const frozen = frozenOf(spec, model, undefined)
          const found = gradientsOf(model, blocks, { ...execution, frozen })
          const whole = networkModel(wholeNetwork(spec))
          const { microbatch } = execution
          const expected = gradientsOf(whole, wholeBlocks(spec, blocks, undefined), { schedule: 'l2l', microbatch })
          ok(Math.abs(found.loss - expected.loss) < 1e-4)
          const chained = chainRule(model, blocks, whole, expected.gradients)
          for (const [k, gradient] of found.gradients.entries()) {
            const off = difference([gradient], [chained[k]])
            ok(off < 1e-4, `${layoutOf(model).blocks[k].name}: ${off}`)
          }
        }),
        { numRuns: runs(12) }
      )
    })
  })
}

/** Gradients of the trained blocks from those of the whole network: dA = scale·dW·Bᵀ and dB = scale·Aᵀ·dW in each part. */
function chainRule(model: Model, blocks: Blocks, whole: Model, gradients: Blocks): Float32Array[] {
  const of = new Map(layersWithBlocks(whole).map(({ name }, k) => [name, gradients[k]]))
  return layersWithBlocks(model).map(({ name, weights, frozen, adapters = [] }, k) => {
    const all = of.get(name) as Float32Array
    if (frozen === undefined) return all
    const result = new Float32Array(totalSize(weights))
    let at = 0
    for (const [i, { weight, parts, rank, scale }] of adapters.entries()) {
      const [inputs, outputs] = frozen[weight].shape
      const dW = all.subarray(totalSize(frozen.slice(0, weight)))
      const [a, b] = [at, at + sizeOf(weights[2 * i].shape)]
      for (let row = 0; row < inputs; row++) {
        for (let column = 0; column < outputs; column++) {
          const part = Math.floor((column * parts) / outputs)
          for (let r = 0; r < rank; r++) {
            const [inA, inB] = [a + (row * parts + part) * rank + r, b + r * outputs + column]
            result[inA] += scale * dW[row * outputs + column] * blocks[k][inB]
            result[inB] += scale * dW[row * outputs + column] * blocks[k][inA]
          }
        }
      }
      at = b + sizeOf(weights[2 * i + 1].shape)
    }
    return result
  })
}

describe('partly trained networks', () => {
  before(() => useBackend('cpu'))

  it('start as the whole network, and keep state and gradients for what is trained only', () => {
    const spec = specOf('bert', { lora: { rank: 2, alpha: 4, layers: 'attention' }, heads: ['output'] })
    const model = networkModel(spec)
    const blocks = [...layersWithBlocks(model)].map(layer => layer.initialWeights(uniforms(3)))
    const merged = wholeBlocks(spec, blocks, undefined)
    const initial = wholeBlocks(
      { ...spec, tuning: { freeze: ['embeddings', 'layers:0-1', 'pooler'] } },
      [blocks[2]],
      undefined
    )
    deepEqual(
      merged.slice(0, -1).map(block => [...block]),
      initial.slice(0, -1).map(block => [...block])
    )
    deepEqual(
      layoutOf(model).blocks.map(({ name }) => name),
      ['block0.attention', 'block1.attention', 'output']
    )
    const engine = new L2LEngine({
      model,
      frozen: frozenOf(spec, model, undefined),
      rule: { name: 'adamw' },
      averaging: { name: 'none' },
      batch: 4,
      predictWith: 'current'
    })
    engine.learn(randomRows(model, 8))
    const { state } = engine.finish()
    const trained = totalSize(layersWithBlocks(model).flatMap(({ weights }) => [...weights]))
    // Two moments of each weight, and two powers.
    equal(
      state.reduce((sum, { length }) => sum + length, 0),
      2 * trained + 2
    )
    const all = totalSize(networkModel(wholeNetwork(spec)).layers.flatMap(({ weights }) => [...weights]))
    ok(engine.report().hostPeakBytes < 4 * (all + 6 * trained))
  })

  it('take at most the device memory that is planned, and at least four fifths of it', () => {
    const freeze = ['embeddings', 'layers:0-2']
    const specs = [
      ...Object.keys(SHAPES).map(name =>
        specOf(name as keyof typeof SHAPES, { lora: { rank: 2, alpha: 2, layers: 'all' } })
      ),
      { ...specOf('bert', { freeze }), layers: parseModel({ model: 'bert', width: 16, layers: 4, heads: 2 }, 'test') }
    ]
    for (const spec of specs) {
      const model = networkModel(spec)
      const profile = profileModel(model)
      const frozen = frozenOf(spec, model, undefined)
      for (const schedule of WHOLE_SCHEDULES) {
        for (const stash of schedule.startsWith('baseline') ? [undefined] : STASH_LOCATIONS.slice(0, 2)) {
          const microbatch = schedule === 'baseline' ? undefined : 2
          const plan = planFor(model, profile, { schedule, microbatch, stash }, 5)
          const options = { schedule, microbatch, stash, layers: plan.layers, frozen }
          const executor = new Executor(model, options)
          const batch = new DenseRows(model)
          const examples = randomRows(model, 5)
          for (let row = 0; row < 5; row++) batch.append(examples, row)
          const before = executor.meter.bytes
          executor.meter.resetPeak()
          executor.train(new BlockStore(model, randomBlocks(model), zeros(layoutOf(model))), batch)
          const peak = executor.meter.peakBytes - before
          executor.close()
          const what = `${model.name}, ${schedule}, ${stash}: ${peak}, expected ${plan.deviceBytes}`
          ok(peak <= plan.deviceBytes && 0.8 * plan.deviceBytes <= peak, what)
        }
      }
    }
  })

  it('refuse names that no layer has, and freezing everything', () => {
    throws(
      () => networkModel(specOf('bert', { freeze: ['layers:2-5'] })),
      /no layer with weights is called layers:2-5; give/
    )
    const all = ['embeddings', 'layers:0-1', 'norm', 'pooler', 'output']
    throws(() => networkModel(specOf('bert', { freeze: all })), /no layer is trained: freeze fewer layers/)
    const lora = { rank: 2, alpha: 4, layers: 'attention' } as const
    throws(
      () => networkModel(specOf('bert', { freeze: ['layers:0-1'], lora, heads: ['output'] })),
      /lora: the network has no attention or rotary-attention layer to adapt: give other layers, or freeze fewer/
    )
  })
})

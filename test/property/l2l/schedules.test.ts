/** All schedules compute the same gradients, and free all device memory. */
import { deepEqual, equal, notDeepEqual, ok, throws } from 'node:assert/strict'
import fc from 'fast-check'
import * as tf from '#tfjs'
import { DenseRows } from '../../../src/l2l/dense-rows.js'
import { Executor } from '../../../src/l2l/executor/executor.js'
import { BlockStore, type ExecutorOptions, STASH_LOCATIONS } from '../../../src/l2l/executor/types.js'
import { zeros } from '../../../src/learning/index.js'
import { initialBlocks, layoutOf } from '../../../src/nn/blocks.js'
import { createModel } from '../../../src/nn/create-model.js'
import { parseModel } from '../../../src/nn/spec/model-spec.js'
import type { Layer, Model } from '../../../src/nn/types.js'
import { denseModel, randomRows } from '../../support/l2l/dense-model.js'
import { BACKENDS, runs, useBackend } from '../../support/l2l/layers.js'
import { layerPlans, layersWith } from '../../support/layer-plans.js'

/** Loss and gradients of one minibatch. */
function gradientsOf(model: Model, options: ExecutorOptions, rows: number) {
  const executor = new Executor(model, options)
  const parameters = initialBlocks(model, 1)
  const sum = zeros(layoutOf(model))
  const batch = new DenseRows(model)
  const examples = randomRows(model, rows)
  for (let row = 0; row < rows; row++) batch.append(examples, row)
  const before = tf.memory().numTensors
  const { loss, hits } = executor.train(new BlockStore(model, parameters, sum), batch)
  equal(tf.memory().numTensors, before)
  executor.close()
  return { loss, hits, sum }
}

function relativeDifference(a: readonly Float32Array[], b: readonly Float32Array[]): number {
  let most = 0
  let largest = 0
  a.forEach((block, k) => {
    block.forEach((value, i) => {
      most = Math.max(most, Math.abs(value - b[k][i]))
      largest = Math.max(largest, Math.abs(value))
    })
  })
  return most / largest
}

const cases = fc.record({
  hidden: fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 0, maxLength: 4 }),
  rows: fc.integer({ min: 1, max: 13 }),
  microbatch: fc.integer({ min: 1, max: 13 }),
  stash: fc.constantFrom(...STASH_LOCATIONS),
  layers: layerPlans(5)
})

for (const device of BACKENDS) {
  /** The choices that a slow driver, which computes on the processor, has time for: the last ones. */
  const some = <T>(choices: readonly T[]) => (device === 'webgpu' ? choices.slice(-1) : choices)

  describe(`schedules of the executor on ${device}`, () => {
    before(() => useBackend(device))

    it('l2l gives the same bits as gradient accumulation, for all stash locations', () => {
      fc.assert(
        fc.property(cases, ({ hidden, rows, microbatch, ...options }) => {
          const model = denseModel(6, hidden, 3)
          const accumulated = gradientsOf(model, { schedule: 'baseline-ag', microbatch }, rows)
          for (const schedule of ['l2l', 'l2l-p'] as const) {
            deepEqual(gradientsOf(model, { schedule, microbatch, ...options }, rows), accumulated)
          }
        }),
        { numRuns: runs(40) }
      )
    })

    it('padding masks and a tied output layer do not depend on the schedule', () => {
      const sample = { kind: 'tokens', shape: [5], vocabulary: 7, padding: 0, separator: 1 } as const
      const shape = { width: 8, layers: 1, heads: 2, dropout: 0.3 }
      for (const [name, target] of [
        ['bert', { kind: 'class', classes: 7 }],
        ['gpt2', { kind: 'next-token' }]
      ] as const) {
        const model = createModel(parseModel({ model: name, ...shape }, 'test'), sample, target)
        const accumulated = gradientsOf(model, { schedule: 'baseline-ag', microbatch: 2 }, 5)
        for (const schedule of ['l2l', 'l2l-p'] as const) {
          for (const options of some([
            { stash: 'host' as const, layers: layersWith([0, 2], { outputs: 'device' }) },
            { layers: layersWith([1, 2], { activations: 'device', isResident: true }) },
            { layers: layersWith([1, 2], { activations: 'host', outputs: 'recomputed', isResident: true }) }
          ])) {
            deepEqual(gradientsOf(model, { schedule, microbatch: 2, ...options }, 5), accumulated)
          }
        }
      }
    })

    it('a transformer with dropout draws the same masks in recomputation, also if its layers are reversible', () => {
      const shape = { width: 8, layers: 1, heads: 2, dropout: 0.3 }
      const sample = { kind: 'tokens', shape: [5], vocabulary: 7 } as const
      const reversible = { kind: 'reversible', layers: 2, heads: 2, inner: 8, causal: true, dropout: 0.3 }
      const layers = [{ kind: 'embedding', width: 8 }, reversible, reversible]
      const coupled = createModel(parseModel({ layers }, 'test'), sample, { kind: 'next-token' })
      for (const schedule of ['baseline', 'l2l', 'l2l-p'] as const) {
        const execution = { schedule, microbatch: schedule === 'baseline' ? undefined : 5 }
        deepEqual(
          gradientsOf(coupled, execution, 5),
          gradientsOf(coupled, { schedule: 'baseline-ag', microbatch: 5 }, 5)
        )
      }
      const model = createModel(parseModel({ model: 'gpt', ...shape }, 'test'), sample, { kind: 'next-token' })
      const accumulated = gradientsOf(model, { schedule: 'baseline-ag', microbatch: 2 }, 5)
      for (const indices of some([[], [2], [1, 3], [0, 1, 2]])) {
        for (const plan of [{ activations: 'device' }, { activations: 'host' }, { outputs: 'recomputed' }] as const) {
          const layers = layersWith(indices, plan)
          const execution = { schedule: 'l2l-p', microbatch: 2, stash: 'host', layers } as const
          deepEqual(gradientsOf(model, execution, 5), accumulated)
        }
      }
      const undropped = createModel(parseModel({ model: 'gpt', ...shape, dropout: 0 }, 'test'), sample, {
        kind: 'next-token'
      })
      notDeepEqual(gradientsOf(undropped, { schedule: 'l2l', microbatch: 2 }, 5).loss, accumulated.loss)
    })

    it('a failing device is reported with the layer, and its memory is freed', () => {
      const working = denseModel(6, [5, 4], 3)
      let fails = true
      const [first, second, third] = working.layers
      const failing: Layer = {
        ...second,
        vjp: (...given) => {
          if (!fails) return second.vjp(...given)
          tf.zeros([8])
          throw new RangeError('Array buffer allocation failed')
        }
      }
      const model = { ...working, layers: [first, failing, third] }
      const executor = new Executor(model, {
        schedule: 'l2l-p',
        microbatch: 2,
        stash: 'host',
        layers: [{ outputs: 'device' }]
      })
      const batch = new DenseRows(model)
      for (let row = 0; row < 5; row++) batch.append(randomRows(model, 5), row)
      const store = new BlockStore(model, initialBlocks(model, 1), zeros(layoutOf(model)))
      const before = tf.memory().numTensors
      const message = /the device failed at layer dense1 \(Array buffer allocation failed\): use a smaller --microbatch/
      throws(() => executor.train(store, batch), { name: 'DeviceError', message: message })
      equal(tf.memory().numTensors, before)
      fails = false
      ok(executor.train(store, batch).loss > 0)
    })

    it('the limit of device memory is that of one executor', () => {
      const model = denseModel(6, [5, 4], 3)
      const batch = new DenseRows(model)
      batch.append(randomRows(model, 1), 0)
      const store = new BlockStore(model, initialBlocks(model, 1), zeros(layoutOf(model)))
      const free = new Executor(model, {})
      const limited = new Executor(model, { deviceMemory: 8 })
      ok(free.train(store, batch).loss > 0)
      throws(() => limited.train(store, batch), { name: 'OverBudgetError' })
      const other = tf.zeros([1 << 18])
      ok(new Executor(model, { deviceMemory: 1 << 18 }).train(store, batch).loss > 0)
      other.dispose()
    })

    it('the whole minibatch at once gives the same gradients up to rounding', () => {
      fc.assert(
        fc.property(cases, ({ hidden, rows, microbatch }) => {
          const model = denseModel(6, hidden, 3)
          const whole = gradientsOf(model, { schedule: 'baseline' }, rows)
          const parts = gradientsOf(model, { schedule: 'l2l', microbatch }, rows)
          ok(relativeDifference(whole.sum, parts.sum) <= 1e-5)
          ok(Math.abs(whole.loss - parts.loss) <= 1e-5 * whole.loss)
          equal(whole.hits, parts.hits)
        }),
        { numRuns: runs(40) }
      )
    })
  })
}

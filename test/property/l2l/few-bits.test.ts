/** Saved activations in few bits: gradients compared with exact ones, and memory with the planner's. */
import { deepEqual, equal, ok, throws } from 'node:assert/strict'
import fc from 'fast-check'
import * as tf from '#tfjs'
import { openDevice } from '../../../src/device/index.js'
import { DenseRows } from '../../../src/l2l/dense-rows.js'
import { Executor } from '../../../src/l2l/executor/executor.js'
import { BlockStore, type ExecutorOptions, type Schedule } from '../../../src/l2l/executor/types.js'
import { resolveExecution } from '../../../src/l2l/planning/planner.js'
import { zeros } from '../../../src/learning/index.js'
import { initialBlocks, layoutOf } from '../../../src/nn/blocks.js'
import { createModel } from '../../../src/nn/create-model.js'
import { dense } from '../../../src/nn/layers/dense.js'
import { inFewBits } from '../../../src/nn/layers/few-bits.js'
import { parseModel } from '../../../src/nn/spec/model-spec.js'
import type { Layer, Model } from '../../../src/nn/types.js'
import { denseModel, randomRows } from '../../support/l2l/dense-model.js'

const allBits = fc.integer({ min: 1, max: 8 })
const PASS = { training: true, seed: 1 }
const BATCH = 8

function network(name: string, more: object = {}): Model {
  const sample = { kind: 'tokens', shape: [9], vocabulary: 40, padding: 0, separator: 1 } as const
  const target = name === 'bert' ? ({ kind: 'class', classes: 2 } as const) : ({ kind: 'next-token' } as const)
  return createModel(parseModel({ model: name, width: 16, layers: 2, heads: 2, ...more }, name), sample, target)
}

/** One step: its loss, gradient and peak on the device. */
function train(model: Model, options: ExecutorOptions, batch = BATCH) {
  const executor = new Executor(model, options)
  const gradient = zeros(layoutOf(model))
  const rows = new DenseRows(model)
  const examples = randomRows(model, batch)
  for (let row = 0; row < batch; row++) rows.append(examples, row)
  const before = executor.meter.bytes
  executor.meter.resetPeak()
  const { loss } = executor.train(new BlockStore(model, initialBlocks(model, 1), gradient), rows)
  executor.close()
  return { loss, gradient: gradient.flatMap(block => [...block]), bytes: executor.meter.peakBytes - before }
}

function norm(numbers: readonly number[]): number {
  return Math.hypot(...numbers)
}

/** The saved tensors of a layer, packed and read again, compared with the exact ones by what its VJP returns for dy = 1. */
function dxOf(layer: Layer, x: tf.Tensor, weights: tf.Tensor[]): Float32Array {
  const { saved } = layer.forwardSaving(x, weights, PASS)
  return layer.vjp(x, weights, tf.onesLike(x), PASS, saved).dx?.dataSync() as Float32Array
}

describe('activations in few bits', () => {
  before(() => openDevice('wasm'))

  it('move the derivative of GELU by no more than half of the gap between two levels', () => {
    const layer = dense({ name: 'gelu', input: [64], units: 64, activation: 'gelu' })
    const model = { ...denseModel(64, [64], 2), layers: [layer] }
    // The largest distances from the levels, rounded up.
    const bounds = [0.501, 0.193, 0.11, 0.054, 0.031, 0.018, 0.011, 0.011]
    const numbers = fc.array(fc.float({ min: -8, max: 8, noNaN: true }), { minLength: 64, maxLength: 64 })
    fc.assert(
      fc.property(numbers, allBits, (values, bits) => {
        tf.tidy(() => {
          const weights = [tf.eye(64), tf.zeros([64])]
          const x = tf.tensor([values])
          const rounded = dxOf(inFewBits(model, bits).layers[0], x, weights)
          for (const [i, slope] of dxOf(layer, x, weights).entries()) {
            ok(Math.abs(rounded[i] - slope) <= bounds[bits - 1], `${bits} bits: ${slope} became ${rounded[i]}`)
          }
          // The derivative has at most 2^bits values.
          ok(new Set(rounded).size <= 2 ** bits)
        })
      })
    )
  })

  it('lose nothing of what has two values', () => {
    fc.assert(
      fc.property(fc.constantFrom('relu', 'dropout'), allBits, fc.nat(), (kind, bits, seed) => {
        const spec = parseModel({ layers: [{ kind: 'dense', units: 8, activation: 'relu' }] }, 'test')
        const dropped = parseModel({ layers: [{ kind: 'dropout', rate: 0.3 }] }, 'test')
        const made = createModel(kind === 'relu' ? spec : dropped, { kind: 'features', shape: [8] }, { kind: 'number' })
        tf.tidy(() => {
          const [exact] = made.layers
          const weights = exact.weights.map(({ shape }, i) => tf.randomNormal([...shape], 0, 1, 'float32', seed + i))
          const x = tf.randomNormal([5, 8], 0, 1, 'float32', seed)
          const { saved } = exact.forwardSaving(x, weights, PASS)
          const [few] = inFewBits(made, bits).layers
          const packed = few.forwardSaving(x, weights, PASS).saved
          const dy = tf.ones([5, ...exact.output])
          const [a, b] = [exact.vjp(x, weights, dy, PASS, saved), few.vjp(x, weights, dy, PASS, packed)]
          const [expected, found] = [a, b].map(({ dx }) => (dx as tf.Tensor).dataSync())
          for (const [i, value] of expected.entries()) ok(Math.abs(value - found[i]) <= 1e-5 * (1 + Math.abs(value)))
        })
      })
    )
  })

  it('keep the loss, and move a gradient by less than 2^(2 − bits) of its norm, from two bits', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('bert', 'gpt', 'gpt2', 'llama'),
        fc.constantFrom<Schedule>('baseline', 'baseline-ag', 'l2l'),
        fc.integer({ min: 2, max: 8 }),
        fc.boolean(),
        (name, schedule, bits, hasDropout) => {
          const model = network(name, hasDropout ? { dropout: 0.2 } : {})
          const microbatch = schedule === 'baseline' ? undefined : 3
          const saving = model.layers.map(() => ({ activations: 'device' }) as const)
          const layers = schedule === 'l2l' ? saving : undefined
          const exact = train(model, { schedule, microbatch, layers })
          const rounded = train(model, { schedule, microbatch, layers, bits })
          equal(rounded.loss, exact.loss)
          const error = norm(exact.gradient.map((value, i) => value - rounded.gradient[i])) / norm(exact.gradient)
          ok(error > 0 && error < 2 ** (2 - bits), `${name}, ${schedule}, ${bits} bits: ${error}`)
        }
      ),
      { numRuns: 30 }
    )
  })

  it('take less memory on the device, as the planner expects', () => {
    fc.assert(
      fc.property(fc.constantFrom('gpt', 'bert'), allBits, (name, bits) => {
        const model = network(name, { width: 32, layers: 4 })
        // A microbatch large enough that activations, not weights, take the memory.
        const peaks = [undefined, bits].map(bits => {
          const execution = { schedule: 'baseline-ag', microbatch: 32, bits } as const
          const { executorOptions, plan } = resolveExecution(model, execution, 64)
          const { bytes } = train(model, executorOptions, 64)
          if (plan) ok(bytes <= plan.deviceBytes && plan.deviceBytes <= 1.25 * bytes, `${bytes}: ${plan.deviceBytes}`)
          return bytes
        })
        ok(peaks[1] < 0.8 * peaks[0], `${bits} bits: ${peaks}`)
      }),
      { numRuns: 8 }
    )
  })

  it('are planned under l2l, in host memory if the stash is there', () => {
    const model = network('gpt', { width: 32 })
    for (const stash of ['device', 'host'] as const) {
      const { executorOptions, plan } = resolveExecution(model, { stash, microbatch: 2, bits: 4 }, BATCH)
      equal(executorOptions.schedule, 'l2l')
      const { bytes } = train(model, executorOptions)
      ok(plan && bytes <= plan.deviceBytes)
    }
  })

  it('are off by default', () => {
    const model = network('gpt')
    equal(inFewBits(model, undefined), model)
    const options = { schedule: 'l2l', microbatch: 2 } as const
    deepEqual(resolveExecution(model, options, BATCH).executorOptions.layers, undefined)
    for (const bits of [0, 9, 1.5]) throws(() => new Executor(model, { bits }), /bits of saved activations/)
    throws(() => new Executor(model, { schedule: 'tensor', bits: 4 }), /schedule tensor does not support bits=4/)
  })
})

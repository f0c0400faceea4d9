/** Plans for a device that is described by its figures. */
import { equal, ok } from 'node:assert/strict'
import fc from 'fast-check'
import * as tf from '#tfjs'
import { networkModel } from '../../../src/l2l/execution.js'
import { profileModel } from '../../../src/l2l/planning/profile.js'
import { countOperations, rooflineProfile } from '../../../src/l2l/planning/roofline.js'
import { boundOf } from '../../../src/l2l/planning/types.js'
import { multiply, multiplyBatch } from '../../../src/nn/ops.js'
import { parseModel } from '../../../src/nn/spec/model-spec.js'
import type { NetworkSpec } from '../../../src/nn/spec/network-spec.js'
import { denseModel } from '../../support/l2l/dense-model.js'
import { BACKENDS, useBackend } from '../../support/l2l/layers.js'

const size = fc.integer({ min: 1, max: 12 })
const near = (actual: number, expected: number, share = 1e-6) =>
  ok(Math.abs(actual - expected) <= share * expected, `${actual}, not ${expected}`)

for (const backend of BACKENDS) {
  describe(`operations on ${backend}`, () => {
    before(() => useBackend(backend))

    it('of products are two for each multiplication', async () => {
      const property = fc.asyncProperty(size, size, size, size, async (batch, m, k, n) => {
        for (const [transposeA, transposeB] of [
          [false, false],
          [true, false],
          [false, true]
        ]) {
          const a = transposeA ? [k, m] : [m, k]
          const b = transposeB ? [n, k] : [k, n]
          const plain = await countOperations(() => {
            const [x, y] = [tf.ones(a), tf.ones(b)]
            return () => multiply(x, y, transposeA, transposeB)
          })
          equal(plain.flops, 2 * m * k * n)
          equal(plain.bytes, 4 * (m * k + k * n + m * n))
          const batched = await countOperations(() => {
            const [x, y] = [tf.ones([batch, ...a]), tf.ones([batch, ...b])]
            return () => multiplyBatch(x, y, transposeA, transposeB)
          })
          equal(batched.flops, 2 * batch * m * k * n)
        }
      })
      await fc.assert(property, { numRuns: 10 })
    })

    it('of a convolution and of attention are about those of the formulas', async () => {
      const image: NetworkSpec = {
        layers: parseModel({ model: 'convnet', filters: [5], size: 3, hidden: 4 }, 'test'),
        sample: { kind: 'features', shape: [8, 8, 2] },
        target: { kind: 'class', classes: 3 }
      }
      const convolution = await profileOf(image)
      // Forward, recomputed, and the gradients of inputs and kernel; activations and their derivatives are small beside them.
      const forwardOfImage = 2 * 8 * 8 * 5 * 3 * 3 * 2
      const share = convolution.layers[0].operations.flops / forwardOfImage
      ok(share > 3 && share < 5, `${share}`)
      const text: NetworkSpec = {
        layers: parseModel({ model: 'gpt', width: 32, layers: 1, heads: 2 }, 'test'),
        sample: { kind: 'tokens', shape: [16], vocabulary: 20 },
        target: { kind: 'next-token' }
      }
      const { layers } = await profileOf(text)
      const attention = layers.find(({ kind }) => kind === 'attention')
      // Four projections and two products of heads, forward, recomputed, and twice in the VJP.
      const forward = 2 * 16 * 32 * 32 * 4 + 2 * 2 * 16 * 16 * 32
      ok((attention?.operations.flops ?? 0) > 3.5 * forward, `${attention?.operations.flops} of ${forward}`)
      ok((attention?.operations.flops ?? 0) < 5.5 * forward, `${attention?.operations.flops} of ${forward}`)
    })
  })
}

async function profileOf(network: NetworkSpec) {
  const model = networkModel(network)
  return rooflineProfile(model, profileModel(model), { flops: 1e9, memoryBandwidth: 1e9, transfer: 1e9 }, 4)
}

describe('a device that is described by its figures', () => {
  before(() => useBackend('cpu'))
  const model = denseModel(6, [8], 3)
  const rate = fc.double({ min: 1e6, max: 1e15, noNaN: true })

  it('takes as long as operations or memory traffic, whichever is longer', async () => {
    const here = profileModel(model)
    const property = fc.asyncProperty(rate, rate, size, async (flops, memoryBandwidth, batch) => {
      const figures = { flops, memoryBandwidth, transfer: 1e9 }
      const { layers, bytesPerMs } = await rooflineProfile(model, here, figures, batch)
      equal(bytesPerMs, 1e6)
      for (const [l, layer] of layers.entries()) {
        const { operations, forwardMs, vjpMs, savedVjpMs } = layer
        const [compute, memory] = [operations.flops / flops, operations.bytes / memoryBandwidth]
        // A sum of maxima is between the maximum of the sums and the sum of all.
        ok(forwardMs + vjpMs >= 999.999 * Math.max(compute, memory))
        ok(forwardMs + vjpMs <= 1000.001 * (compute + memory))
        ok(savedVjpMs <= vjpMs)
        near(layer.weightBytes, here.layers[l].weightBytes)
        const ms = batch * (forwardMs + vjpMs)
        equal(boundOf(layer, figures, { ms, batch, isSaved: false }), compute >= memory ? 'compute' : 'memory')
        equal(boundOf(layer, figures, { ms: 3 * ms, batch, isSaved: false }), 'transfer')
      }
    })
    await fc.assert(property, { numRuns: 10 })
  })

  it('reads the weights once for all samples of a batch', async () => {
    const here = profileModel(model)
    const figures = { flops: 1e9, memoryBandwidth: 1e9, transfer: 1e9 }
    const [few, many] = [
      await rooflineProfile(model, here, figures, 1),
      await rooflineProfile(model, here, figures, 64)
    ]
    const bytes = (profile: typeof few) => profile.layers[0].operations.bytes
    ok(bytes(many) < bytes(few) - here.layers[0].weightBytes / 2)
    near(many.layers[0].operations.flops, few.layers[0].operations.flops, 0.5)
  })
})

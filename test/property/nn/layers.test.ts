/**
 * Every layer's hand-written VJP on every backend, compared with the cpu backend's tape and with finite differences.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import * as tf from '#tfjs'
import {
  attentionLayer,
  gatedPerceptronLayer,
  perceptronLayer,
  rotaryAttentionLayer
} from '../../../src/nn/layers/block.js'
import { convolution } from '../../../src/nn/layers/convolution.js'
import { dense } from '../../../src/nn/layers/dense.js'
import { embedding, tokenOutput } from '../../../src/nn/layers/embedding.js'
import { layerNorm, rmsNorm } from '../../../src/nn/layers/norms.js'
import { reversibleLayer } from '../../../src/nn/layers/reversible.js'
import { dropout, firstPool, flatten, maxPool, meanPool } from '../../../src/nn/layers/weightless.js'
import { randomBits } from '../../../src/nn/random.js'
import { ACTIVATIONS } from '../../../src/nn/spec/layer-kinds.js'
import { type Layer, sizeOf } from '../../../src/nn/types.js'
import {
  type Arrays,
  arraysOf,
  BACKENDS,
  type Case,
  difference,
  runs,
  tapeOf,
  useBackend,
  vjpOf,
  weightedValue,
  withTensors
} from '../../support/l2l/layers.js'

const size = fc.integer({ min: 1, max: 5 })
const activation = fc.constantFrom(...ACTIVATIONS)
const residualOptions = {
  norm: fc.constantFrom('before' as const, 'after' as const, 'none' as const),
  hasShortcut: fc.boolean(),
  dropout: fc.constantFrom(0, 0.3),
  skip: fc.constantFrom(0, 0.4)
}
/** Clears `skip` for layers that cannot be skipped. */
const skippable = <T extends { norm: string; hasShortcut: boolean; skip: number }>(options: T): T =>
  options.hasShortcut && options.norm !== 'after' ? options : { ...options, skip: 0 }

const layers: Record<string, fc.Arbitrary<Layer>> = {
  dense: fc
    .record({ input: fc.array(size, { minLength: 1, maxLength: 2 }), units: size, activation })
    .map(options => dense({ name: 'dense', ...options })),
  'layer norm': fc
    .record({ length: size, width: fc.integer({ min: 4, max: 8 }) })
    .map(({ length, width }) => layerNorm({ name: 'norm', input: [length, width] })),
  embedding: fc
    .record({ vocabulary: size, length: size, width: size })
    .map(options => embedding({ name: 'embedding', ...options })),
  'embedding of pairs': fc
    .record({ vocabulary: size, length: size, width: size, more: fc.nat(2), separator: fc.nat(4) })
    .map(({ more, ...options }) =>
      embedding({ name: 'embedding', ...options, positions: options.length + more, segments: 2 })
    ),
  attention: fc
    .record({
      length: size,
      heads: fc.constantFrom(1, 2, 3),
      perHead: size,
      isCausal: fc.boolean(),
      mask: fc.constantFrom('padding' as const, undefined),
      ...residualOptions
    })
    // A norm over few numbers is almost constant, its derivative almost 0.
    .map(({ heads, perHead, ...options }) =>
      attentionLayer({ name: 'attention', heads, width: heads * (perHead + 3), ...skippable(options) })
    ),
  mlp: fc
    .record({ length: size, width: fc.integer({ min: 4, max: 8 }), inner: size, activation, ...residualOptions })
    .map(options => perceptronLayer({ name: 'mlp', ...skippable(options) })),
  'embedding without positions': fc
    .record({ vocabulary: size, length: size, width: size })
    .map(options => embedding({ name: 'embedding', ...options, positions: 0 })),
  'rms norm': fc
    .record({ length: size, width: fc.integer({ min: 4, max: 8 }) })
    .map(({ length, width }) => rmsNorm({ name: 'norm', input: [length, width], epsilon: 0.1 })),
  'rotary attention': fc
    .record({
      length: size,
      keyHeads: fc.constantFrom(1, 2),
      group: fc.constantFrom(1, 2),
      half: fc.integer({ min: 1, max: 3 }),
      theta: fc.constantFrom(10, 10000),
      ...residualOptions
    })
    .map(({ keyHeads, group, half, ...options }) =>
      rotaryAttentionLayer({
        ...skippable(options),
        name: 'attention',
        keyHeads,
        heads: keyHeads * group,
        width: 2 * half * keyHeads * group,
        isRms: true,
        epsilon: 0.1
      })
    ),
  'gated perceptron': fc
    .record({ length: size, width: fc.integer({ min: 4, max: 8 }), inner: size, ...residualOptions })
    .map(options => gatedPerceptronLayer({ ...skippable(options), name: 'mlp', isRms: true, epsilon: 0.1 })),
  reversible: fc
    .record({
      length: size,
      layers: fc.integer({ min: 1, max: 4 }),
      heads: fc.constantFrom(1, 2),
      perHead: fc.integer({ min: 4, max: 6 }),
      inner: size,
      activation,
      isCausal: fc.boolean(),
      mask: fc.constantFrom('padding' as const, undefined),
      dropout: fc.constantFrom(0, 0.3)
    })
    .map(({ perHead, ...options }) =>
      reversibleLayer({ ...options, name: 'reversible', width: 2 * options.heads * perHead, epsilon: 0.1 })
    ),
  dropout: fc
    .record({ input: fc.array(size, { minLength: 1, maxLength: 2 }), rate: fc.constantFrom(0, 0.1, 0.5) })
    .map(options => dropout({ name: 'dropout', ...options })),
  convolution: fc
    .record({
      height: fc.integer({ min: 3, max: 7 }),
      width: fc.integer({ min: 3, max: 7 }),
      channels: fc.integer({ min: 1, max: 3 }),
      filters: fc.integer({ min: 1, max: 3 }),
      size: fc.integer({ min: 1, max: 3 }),
      stride: fc.integer({ min: 1, max: 2 }),
      padding: fc.constantFrom('same' as const, 'valid' as const),
      activation
    })
    .map(({ height, width, channels, ...options }) =>
      convolution({ name: 'convolution', input: [height, width, channels], ...options })
    ),
  'max pooling': fc
    .record({ height: fc.integer({ min: 3, max: 7 }), width: fc.integer({ min: 3, max: 7 }), channels: size })
    .chain(({ height, width, channels }) =>
      fc.integer({ min: 2, max: 3 }).map(size => maxPool({ name: 'pool', input: [height, width, channels], size }))
    ),
  flatten: fc
    .record({ height: size, width: size })
    .map(({ height, width }) => flatten({ name: 'flat', input: [height, width] })),
  'first position': fc
    .record({ length: size, width: size })
    .map(({ length, width }) => firstPool({ name: 'first', input: [length, width] })),
  'token output': fc
    .record({ vocabulary: size, length: size, width: size, tied: fc.boolean() })
    .map(({ vocabulary, length, width, tied }) =>
      tokenOutput({
        name: 'output',
        tied,
        input: [length, width],
        first: embedding({ name: 'embedding', vocabulary, length, width })
      })
    ),
  'mean over positions': fc
    .record({ length: size, width: size })
    .map(({ length, width }) => meanPool({ name: 'pool', input: [length, width] }))
}

function casesOf(layer: fc.Arbitrary<Layer>): fc.Arbitrary<Case> {
  return fc
    .record({ layer, batch: fc.integer({ min: 1, max: 3 }), seed: fc.integer({ min: 0 }), isTraining: fc.boolean() })
    .map(({ layer, batch, seed, isTraining }) => ({
      layer,
      batch,
      seed,
      pass: { training: isTraining, seed, lengths: lengthsFrom(seed, batch, layer.input[0]) },
      vocabulary: layer.kind === 'embedding' ? layer.weights[0].shape[0] : undefined
    }))
}

/** Tokens before the padding of each sample. */
function lengthsFrom(seed: number, batch: number, most: number): Int32Array {
  return Int32Array.from({ length: batch }, (_, row) => 1 + (randomBits(seed, 1000 + row) % most))
}

describe('sixteen reversible blocks', () => {
  it('have the gradients of the tape, which keeps all activations, to 1e-4', async () => {
    const options = { length: 4, width: 16, heads: 2, inner: 12, activation: 'gelu', dropout: 0.2 } as const
    const layer = reversibleLayer({ ...options, name: 'reversible', layers: 16, isCausal: true })
    const cases = casesOf(fc.constant(layer))
    await fc.assert(
      fc.asyncProperty(cases, async at => {
        const arrays = arraysOf(at)
        await useBackend('cpu')
        const expected = tapeOf(at, arrays)
        for (const backend of BACKENDS) {
          await useBackend(backend)
          const off = difference(vjpOf(at, arrays, true), expected)
          assert.ok(off < 1e-4, `${backend}: ${off} off`)
        }
      }),
      { numRuns: runs(10) }
    )
  })
})

describe('layers', () => {
  for (const [name, layer] of Object.entries(layers)) {
    describe(name, () => {
      it('has the gradients of the tape, and saved and recomputed activations give the same bits', async () => {
        await fc.assert(
          fc.asyncProperty(casesOf(layer), async at => {
            const arrays = arraysOf(at)
            await useBackend('cpu')
            const expected = tapeOf(at, arrays)
            for (const backend of BACKENDS) {
              await useBackend(backend)
              const recomputed = vjpOf(at, arrays, false)
              assert.ok(difference(recomputed, expected) < 1e-4, `${backend}: ${difference(recomputed, expected)} off`)
              assert.deepEqual(vjpOf(at, arrays, true), recomputed, backend)
            }
          }),
          { numRuns: runs(25) }
        )
      })

      it('has the derivatives of finite differences', async () => {
        await fc.assert(
          fc.asyncProperty(casesOf(layer), async at => {
            const arrays = arraysOf(at)
            for (const backend of BACKENDS) {
              await useBackend(backend)
              checkSlope(at, arrays)
            }
          }),
          { numRuns: runs(15) }
        )
      })

      it('leaves nothing on the device, and saves the declared activations', async () => {
        await fc.assert(
          fc.asyncProperty(casesOf(layer), async at => {
            const arrays = arraysOf(at)
            for (const backend of BACKENDS) {
              await useBackend(backend)
              const before = tf.memory().numTensors
              withTensors(at, arrays, (x, weights) => {
                const during = tf.memory().numTensors
                const y = at.layer.forward(x, weights, at.pass)
                assert.equal(tf.memory().numTensors, during + 1)
                assert.deepEqual(y.shape, [at.batch, ...at.layer.output])
                const { y: same, saved } = at.layer.forwardSaving(x, weights, at.pass)
                assert.deepEqual(same.dataSync(), y.dataSync())
                assert.deepEqual(
                  saved.map(({ shape }) => shape),
                  at.layer.activations.map(shape => [at.batch, ...shape])
                )
                assert.equal(tf.memory().numTensors, during + 2 + saved.length)
                tf.dispose([y, same, ...saved])
              })
              vjpOf(at, arrays, true)
              vjpOf(at, arrays, false)
              assert.equal(tf.memory().numTensors, before)
            }
          }),
          { numRuns: runs(10) }
        )
      })

      it('has as many initial weights as declared', () =>
        fc.assert(
          fc.property(layer, layer => {
            const block = layer.initialWeights(() => 0.25)
            assert.equal(
              block.length,
              layer.weights.reduce((sum, { shape }) => sum + sizeOf(shape), 0)
            )
            assert.ok(block.every(Number.isFinite))
          }),
          { numRuns: 10 }
        ))
    })
  }
})

const STEP = 2 ** -6

/** Compares the gradient with the derivative along a random direction, at a point without a kink nearby. */
function checkSlope(at: Case, arrays: Arrays): void {
  const gradients = vjpOf(at, arrays, false)
  const length = Math.hypot(...gradients.map(part => Math.hypot(...part)))
  for (let attempt = 0; attempt < 30; attempt++) {
    const direction = directionFrom(at.seed + 1 + attempt, gradients)
    const wide = slopeAlong(at, arrays, direction, STEP)
    const narrow = slopeAlong(at, arrays, direction, STEP / 2)
    if (wide === undefined || narrow === undefined) continue
    const expected = gradients.reduce((sum, part, i) => sum + part.reduce((s, g, j) => s + g * direction[i][j], 0), 0)
    // Halving the step changes the estimate by three times the remaining error.
    const tolerance = Math.abs(wide - narrow) + 0.005 * length + 2e-3
    assert.ok(Math.abs(narrow - expected) <= tolerance, `slope ${narrow}, expected ${expected}`)
    return
  }
  fc.pre(false)
}

/** The central difference; undefined if there is a kink between the two points. */
function slopeAlong(at: Case, arrays: Arrays, direction: readonly Float32Array[], step: number): number | undefined {
  const ahead = weightedValue(at, moved(at, arrays, direction, step))
  const behind = weightedValue(at, moved(at, arrays, direction, -step))
  // Derivatives of rectifiers and indices of maxima are integers.
  const isPiecewise = (numbers: Float32Array) => numbers.every(Number.isInteger)
  const sides = ahead.saved.map((numbers, i) => [numbers, behind.saved[i]])
  const isCrossed = sides.some(([a, b]) => isPiecewise(a) && isPiecewise(b) && a.some((v, j) => v !== b[j]))
  return isCrossed ? undefined : (ahead.value - behind.value) / (2 * step)
}

function directionFrom(seed: number, like: readonly Float32Array[]): Float32Array[] {
  let counter = 0
  const along = like.map(part => part.map(() => randomBits(seed, counter++) / 2 ** 31 - 1))
  const length = Math.hypot(...along.map(part => Math.hypot(...part)))
  return along.map(part => part.map(v => v / length))
}

function moved({ vocabulary }: Case, arrays: Arrays, direction: readonly Float32Array[], by: number): Arrays {
  const add = (numbers: Float32Array, along: Float32Array) => numbers.map((v, i) => v + by * along[i])
  const ofWeights = vocabulary === undefined ? direction.slice(1) : direction
  return {
    ...arrays,
    x: vocabulary === undefined ? add(arrays.x, direction[0]) : arrays.x,
    weights: arrays.weights.map((numbers, i) => add(numbers, ofWeights[i]))
  }
}

/** Properties of layers other than their gradients. */
import assert from 'node:assert/strict'
import * as tf from '#tfjs'
import { attentionLayer, perceptronLayer, residual } from '../../../src/nn/layers/block.js'
import { convolution } from '../../../src/nn/layers/convolution.js'
import { layerNorm } from '../../../src/nn/layers/norms.js'
import { dropout, maxPool } from '../../../src/nn/layers/weightless.js'
import { sequence } from '../../../src/nn/layers/wrappers.js'
import { multiplyBatch } from '../../../src/nn/ops.js'
import type { Layer } from '../../../src/nn/types.js'
import {
  arraysOf,
  BACKENDS,
  type Case,
  difference,
  numbersOf,
  useBackend,
  withTensors
} from '../../support/l2l/layers.js'
import { tapeGradients } from '../../support/l2l/tape.js'

const pass = { training: true, seed: 11 }
const residualOptions = { norm: 'before', hasShortcut: true, dropout: 0 } as const

describe('layers: properties other than gradients', () => {
  for (const backend of BACKENDS) {
    describe(`on ${backend}`, () => {
      before(() => useBackend(backend))

      it('causal attention ignores later positions, full attention does not', () => {
        for (const isCausal of [true, false]) {
          const layer = attentionLayer({ name: 'a', length: 5, width: 8, heads: 2, isCausal, ...residualOptions })
          const at: Case = { layer, batch: 1, pass, seed: 1 }
          const arrays = arraysOf(at)
          const outputsFor = (x: Float32Array) =>
            withTensors(at, { ...arrays, x }, (input, weights) => {
              const y = layer.forward(input, weights, pass)
              const numbers = numbersOf(y)
              y.dispose()
              return numbers
            })
          const changed = Float32Array.from(arrays.x, (v, i) => (i < 3 * 8 ? v : -v))
          const before = outputsFor(arrays.x).slice(0, 3 * 8)
          const after = outputsFor(changed).slice(0, 3 * 8)
          if (isCausal) assert.deepEqual(after, before)
          else assert.ok(difference([after], [before]) > 1e-3)
        }
      })

      it('max pooling sends the gradient to the first of equal maxima', () => {
        const layer = maxPool({ name: 'p', input: [2, 4, 1], size: 2 })
        const x = tf.tensor([0, 0, 3, 7, 0, 0, 7, 7], [1, 2, 4, 1])
        const dy = tf.tensor([5, 6], [1, 1, 2, 1])
        const { dx } = layer.vjp(x, [], dy, pass)
        assert.deepEqual([...numbersOf(dx as tf.Tensor)], [5, 0, 0, 6, 0, 0, 0, 0])
        tf.dispose([x, dy, dx as tf.Tensor])
      })

      it('large batched products equal the products of the single matrices', () => {
        const [a, b] = [
          tf.randomUniform([3, 70, 30], -1, 1, 'float32', 1),
          tf.randomUniform([3, 70, 40], -1, 1, 'float32', 2)
        ]
        const product = multiplyBatch(a, b, true, false)
        const parts = [0, 1, 2].map(i =>
          tf.tidy(() => {
            const part = (batch: tf.Tensor) => tf.squeeze(tf.slice(batch, [i, 0, 0], [1, -1, -1]), [0]) as tf.Tensor2D
            return numbersOf(tf.matMul(part(a), part(b), true, false))
          })
        )
        const whole = numbersOf(product)
        assert.ok(
          difference(
            [0, 1, 2].map(i => whole.slice(i * 1200, (i + 1) * 1200)),
            parts
          ) < 1e-5
        )
        tf.dispose([a, b, product])
      })
    })
  }

  it('dropout draws the same mask for a seed on every backend, and different masks for different seeds', async () => {
    const layer = dropout({ name: 'd', input: [1000], rate: 0.25 })
    const masks: Float32Array[] = []
    for (const [backend, seed] of [
      ['cpu', 1],
      ['wasm', 1],
      ['wasm', 2]
    ] as const) {
      await useBackend(backend)
      const ones = tf.ones([4, 1000])
      const y = layer.forward(ones, [], { training: true, seed })
      masks.push(numbersOf(y))
      const untouched = layer.forward(ones, [], { training: false, seed })
      assert.ok(numbersOf(untouched).every(v => v === 1))
      tf.dispose([ones, y, untouched])
    }
    assert.deepEqual(masks[1], masks[0])
    assert.notDeepEqual(masks[2], masks[1])
    const dropped = masks[0].filter(v => v === 0).length
    assert.ok(dropped > 900 && dropped < 1100, `${dropped} of 4000 dropped`)
    assert.ok(masks[0].every(v => v === 0 || v === Math.fround(4 / 3)))
  })

  it('two dropouts in one layer draw independent masks', async () => {
    await useBackend('cpu')
    const dropHalf = (name: string) => dropout({ name, input: [500], rate: 0.5 })
    const layer = sequence({ kind: 'twice', name: 't', layers: [dropHalf('a'), dropHalf('b')] })
    const ones = tf.ones([1, 500])
    const y = layer.forward(ones, [], pass)
    const left = numbersOf(y).filter(v => v !== 0).length
    assert.ok(left > 80 && left < 170, `${left} of 500 left, expected about a quarter`)
    tf.dispose([ones, y])
  })

  it('a shortcut requires equal input and output shapes', () => {
    const narrow = convolution({
      name: 'c',
      input: [4, 4, 1],
      filters: 2,
      size: 3,
      stride: 1,
      padding: 'same',
      activation: 'none'
    })
    assert.throws(() => residual(narrow), { name: 'ModelError', message: /layer c .*maps 4×4×1 to 4×4×2/ })
  })

  const large: Layer[] = [
    attentionLayer({ name: 'attention', length: 16, width: 32, heads: 4, isCausal: true, ...residualOptions }),
    perceptronLayer({ name: 'mlp', length: 16, width: 32, inner: 128, activation: 'gelu', ...residualOptions }),
    layerNorm({ name: 'norm', input: [16, 32] }),
    convolution({
      name: 'convolution',
      input: [12, 12, 4],
      filters: 4,
      size: 3,
      stride: 1,
      padding: 'same',
      activation: 'gelu'
    })
  ]
  for (const layer of large) {
    it(`the VJP of ${layer.name} needs less memory than the tape`, async () => {
      await useBackend('cpu')
      const at: Case = { layer, batch: 4, pass, seed: 1 }
      const arrays = arraysOf(at)
      const handWritten = await peakOf(at, arrays, (x, weights, dy) => {
        const { dx, dWeights } = layer.vjp(x, weights, dy, pass)
        tf.dispose([dx as tf.Tensor, ...dWeights])
      })
      const tape = await peakOf(at, arrays, (x, weights, dy) => {
        tf.dispose(tapeGradients((input, ...given) => layer.forward(input, given, pass), [x, ...weights], dy))
      })
      assert.ok(handWritten < 0.75 * tape, `${handWritten} bytes, the tape ${tape}`)
    })
  }
})

/** Peak bytes without the arguments. */
async function peakOf(
  at: Case,
  arrays: Parameters<typeof withTensors>[1],
  run: (x: tf.Tensor, weights: tf.Tensor[], dy: tf.Tensor) => void
): Promise<number> {
  const tensors: tf.Tensor[] = []
  withTensors(at, arrays, (x, weights, dy) => {
    tensors.push(...[x, ...weights, dy].map(tensor => tf.clone(tensor)))
  })
  const before = tf.memory().numBytes
  const { peakBytes } = await tf.profile(() => {
    run(tensors[0], tensors.slice(1, -1), tensors[tensors.length - 1])
    return tensors[0]
  })
  tf.dispose(tensors)
  return peakBytes - before
}

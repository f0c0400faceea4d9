/** Fused BLAS kernels of fully connected layers on wasm, compared with the backend's operations. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import * as tf from '#tfjs'
import type { AffineKernel } from '../../../src/device/blas-kernels.js'
import { openDevice } from '../../../src/device/index.js'

const sizes = fc.integer({ min: 1, max: 9 })

function run<Made = tf.Tensor>(kernel: AffineKernel, inputs: tf.NamedTensorMap): Made {
  return tf.engine().runKernel(kernel, inputs, {}) as Made
}

function near(actual: tf.Tensor, expected: tf.Tensor): void {
  assert.deepEqual(actual.shape, expected.shape)
  const [a, b] = [actual, expected].map(tensor => tensor.dataSync())
  for (const [i, value] of b.entries()) assert.ok(Math.abs(a[i] - value) < 1e-5, `${i}: ${a[i]}, not ${value}`)
}

describe('BLAS kernels of affine maps', () => {
  before(async function () {
    const { detail, hasFastProducts } = await openDevice('wasm')
    if (hasFastProducts) return
    console.log(`      skipped: no BLAS was found (${detail}); run admb doctor for instructions`)
    this.skip()
  })

  it('equal products and sums for all shapes', () => {
    fc.assert(
      fc.property(fc.array(sizes, { maxLength: 2 }), sizes, sizes, (outer, width, units) =>
        tf.tidy(() => {
          const draw = (shape: number[], seed: number) => tf.randomUniform(shape, -1, 1, 'float32', seed)
          const [x, dy] = [draw([...outer, width], 1), draw([...outer, units], 2)]
          const [kernel, bias] = [draw([width, units], 3), draw([units], 4)]
          const rows = tf.reshape(x, [-1, width]) as tf.Tensor2D
          const above = tf.reshape(dy, [-1, units]) as tf.Tensor2D
          const y = tf.add(tf.matMul(rows, kernel as tf.Tensor2D), bias)
          near(run('Affine', { x, kernel, bias }), tf.reshape(y, dy.shape))
          const back = tf.matMul(above, kernel as tf.Tensor2D, false, true)
          near(run('AffineBack', { dy, kernel }), tf.reshape(back, x.shape))
          const [dKernel, dBias] = run<tf.Tensor[]>('AffineGradients', { x, dy })
          near(dKernel, tf.matMul(rows, above, true))
          near(dBias, tf.sum(above, 0))
        })
      ),
      { numRuns: 100 }
    )
  })
})

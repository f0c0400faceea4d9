/** Custom wasm kernels compared with the TensorFlow.js operations that they replace, for all lengths. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import * as tf from '#tfjs'
import { openDevice } from '../../../src/device/index.js'
import type { WasmKernel } from '../../../src/device/wasm-kernels.js'

const number = fc.float({ min: -8, max: 8, noNaN: true })
/** Rows and widths, including widths that are not multiples of four. */
const matrices = fc
  .record({ rows: fc.integer({ min: 1, max: 7 }), width: fc.integer({ min: 1, max: 11 }) })
  .chain(({ rows, width }) =>
    fc.record({
      shape: fc.constant([rows, width] as [number, number]),
      values: fc.array(number, { minLength: rows * width, maxLength: rows * width }),
      others: fc.array(number, { minLength: rows * width, maxLength: rows * width })
    })
  )

function run<Made = tf.Tensor>(kernel: WasmKernel, inputs: tf.NamedTensorMap, attributes: object = {}): Made {
  return tf.engine().runKernel(kernel, inputs, attributes as tf.NamedAttrMap) as Made
}

function near(actual: tf.Tensor, expected: tf.Tensor, tolerance = 2e-6): void {
  assert.deepEqual(actual.shape, expected.shape)
  const [a, b] = [actual, expected].map(tensor => tensor.dataSync())
  for (const [i, value] of b.entries()) {
    assert.ok(Math.abs(a[i] - value) <= tolerance * (1 + Math.abs(value)), `${i}: ${a[i]}, not ${value}`)
  }
}

function forMatrices(check: (x: tf.Tensor2D, y: tf.Tensor2D) => void): void {
  fc.assert(
    fc.property(matrices, ({ shape, values, others }) =>
      tf.tidy(() => check(tf.tensor2d(values, shape), tf.tensor2d(others, shape)))
    ),
    { numRuns: 100 }
  )
}

/** Value and slope. */
function geluAt(z: number): [y: number, slope: number] {
  const c = Math.sqrt(2 / Math.PI)
  const t = Math.tanh(c * (z + 0.044715 * z ** 3))
  return [0.5 * z * (1 + t), 0.5 * (1 + t) + 0.5 * z * (1 - t * t) * c * (1 + 3 * 0.044715 * z * z)]
}

describe('custom wasm kernels', () => {
  before(() => openDevice('wasm'))

  it('addition and multiplication with broadcasting, and sums of rows', () =>
    forMatrices((x, y) => {
      const row = tf.reshape(tf.slice(y, [0, 0], [1, -1]), [-1])
      near(run('AddInPlace', { x: tf.add(x, 0), y }), tf.add(x, y), 0)
      near(run('MultiplyInPlace', { x: tf.add(x, 0), y }), tf.mul(x, y), 0)
      near(run('AddInPlace', { x: tf.add(x, 0), y: row }), tf.add(x, row), 0)
      near(run('SumRows', { x }), tf.sum(x, 0), 1e-5)
    }))

  it('gelu and its derivative', () =>
    forMatrices(z => {
      const known = Array.from(z.dataSync(), geluAt)
      const [expected, slope] = [0, 1].map(i =>
        tf.tensor2d(
          known.map(pair => pair[i]),
          z.shape
        )
      )
      near(run('GeluInPlace', { z: tf.add(z, 0) }), expected)
      const [y, slopes] = run<tf.Tensor[]>('GeluWithSlopeInPlace', { z: tf.add(z, 0) })
      near(y, expected)
      near(slopes, slope, 1e-5)
    }))

  it('exact gelu and its derivative', () =>
    forMatrices(z => {
      const [gate, density] = [
        tf.mul(0.5, tf.add(1, tf.erf(tf.div(z, Math.SQRT2)))),
        tf.mul(tf.exp(tf.mul(-0.5, tf.square(z))), 1 / Math.sqrt(2 * Math.PI))
      ]
      near(run('GeluExactInPlace', { z: tf.add(z, 0) }), tf.mul(z, gate))
      const [y, slopes] = run<tf.Tensor[]>('GeluExactWithSlopeInPlace', { z: tf.add(z, 0) })
      near(y, tf.mul(z, gate))
      near(slopes, tf.add(gate, tf.mul(z, density)))
    }))

  for (const kernel of ['GeluInPlace', 'GeluExactInPlace'] as const) {
    it(`${kernel} of large numbers and NaN`, () => {
      tf.tidy(() => {
        const z = [-1e4, -50, -20, 20, 50, 1e4, Number.NaN]
        const y = [...run(kernel, { z: tf.tensor1d(z) }).dataSync()]
        assert.deepEqual(
          y.map(Math.abs).map(value => (value < 1e-20 ? 0 : value)),
          [0, 0, 0, 20, 50, 1e4, Number.NaN]
        )
      })
    })
  }

  it('layer norm', () =>
    forMatrices((x, y) => {
      const [scale, offset] = [tf.sum(y, 0), tf.mean(y, 0)]
      const { mean, variance } = tf.moments(x, -1, true)
      const inverse = tf.rsqrt(tf.add(variance, 0.1))
      const normal = tf.mul(tf.sub(x, mean), inverse)
      const made = run<tf.Tensor[]>('LayerNorm', { x, scale, offset }, { epsilon: 0.1 })
      near(made[0], tf.add(tf.mul(normal, scale), offset), 1e-4)
      near(made[1], mean, 1e-5)
      near(made[2], inverse, 1e-5)
    }))

  it('layer norm gradient', () =>
    forMatrices((x, dy) => {
      const scale = tf.mean(dy, 0)
      const { mean, variance } = tf.moments(x, -1, true)
      const inverse = tf.rsqrt(tf.add(variance, 0.1))
      const normal = tf.mul(tf.sub(x, mean), inverse)
      const d = tf.mul(dy, scale)
      const along = tf.mul(normal, tf.mean(tf.mul(d, normal), -1, true))
      const expected = tf.mul(tf.sub(tf.sub(d, tf.mean(d, -1, true)), along), inverse)
      const [dx, dScale, dOffset] = run<tf.Tensor[]>('LayerNormBack', { x, mean, inverse, scale, dy })
      near(dx, expected, 1e-3)
      near(dScale, tf.sum(tf.mul(dy, normal), 0), 1e-4)
      near(dOffset, tf.sum(dy, 0), 1e-4)
    }))

  it('softmax', () =>
    forMatrices(x => near(run('SoftmaxInPlace', { x: tf.add(x, 0) }, { isCausal: false }), tf.softmax(x))))

  it('causal softmax', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 3 }), (length, batch) =>
        tf.tidy(() => {
          const x = tf.randomUniform([batch, length, length], -4, 4, 'float32', length)
          const later = tf.sub(1, tf.linalg.bandPart(tf.ones([length, length]), -1, 0))
          const expected = tf.softmax(tf.sub(x, tf.mul(later, 1e9)))
          near(run('SoftmaxInPlace', { x: tf.add(x, 0) }, { isCausal: true }), expected)
        })
      ),
      { numRuns: 30 }
    )
  })

  it('softmax over the positions before the padding', () => {
    const sizes = { length: fc.integer({ min: 1, max: 9 }), heads: fc.integer({ min: 1, max: 3 }) }
    fc.assert(
      fc.property(fc.record(sizes), fc.array(fc.nat(8), { minLength: 1, maxLength: 3 }), ({ length, heads }, drawn) =>
        tf.tidy(() => {
          const lengths = Int32Array.from(drawn, n => 1 + (n % length))
          const x = tf.randomUniform([lengths.length * heads, length, length], -4, 4, 'float32', length)
          const p = run('SoftmaxInPlace', { x: tf.add(x, 0) }, { isCausal: false, lengths })
          const bySample = (from: tf.Tensor, sample: number, width: number) =>
            tf.slice(from, [sample * heads, 0, 0], [heads, length, width])
          for (const [sample, visible] of lengths.entries()) {
            near(bySample(p, sample, visible), tf.softmax(bySample(x, sample, visible)))
            assert.ok(Math.abs(tf.sum(bySample(p, sample, length)).dataSync()[0] - heads * length) < 1e-3)
          }
        })
      ),
      { numRuns: 30 }
    )
  })

  it('softmax gradient', () =>
    forMatrices((x, dp) => {
      const p = tf.softmax(x)
      const expected = tf.mul(p, tf.sub(dp, tf.sum(tf.mul(p, dp), -1, true)))
      near(run('SoftmaxBackInPlace', { dp: tf.add(dp, 0), p }), expected, 1e-5)
    }))

  it('write in place only if no other tensor shares the memory', () => {
    tf.tidy(() => {
      for (const kernel of ['AddInPlace', 'MultiplyInPlace'] as const) {
        const x = tf.tensor1d([1, 2, 3, 4, 5])
        const shared = tf.reshape(x, [1, 5])
        const made = run(kernel, { x, y: tf.tensor1d([2, 2, 2, 2, 2]) })
        assert.deepEqual([...shared.dataSync()], [1, 2, 3, 4, 5])
        assert.notEqual(made.dataId, x.dataId)
        shared.dispose()
        assert.equal(run(kernel, { x, y: tf.tensor1d([2, 2, 2, 2, 2]) }).dataId, x.dataId)
      }
    })
  })
})

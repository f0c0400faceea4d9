/** Replaced WebGPU kernels, if the packages and a driver are installed. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import * as tf from '#tfjs'
import { openDevice } from '../../../src/device/index.js'
import { uniforms } from '../../../src/nn/random.js'
import { needWebgpu } from '../../support/webgpu.js'

const updates = fc.integer({ min: 1, max: 9 }).chain(rows =>
  fc.record({
    rows: fc.constant(rows),
    width: fc.integer({ min: 1, max: 40 }),
    // Most rows receive several updates.
    indices: fc.array(fc.nat(rows - 1), { minLength: 1, maxLength: 60 }),
    seed: fc.nat()
  })
)

describe('kernels on webgpu', function () {
  this.timeout(60_000)

  before(needWebgpu)
  after(() => openDevice('wasm'))

  it('sum updates of a row in order, bit for bit', () => {
    fc.assert(
      fc.property(updates, ({ rows, width, indices, seed }) => {
        const random = uniforms(seed)
        const values = Float32Array.from({ length: indices.length * width }, () => 2 * random() - 1)
        const expected = new Float32Array(rows * width)
        for (const [i, row] of indices.entries()) {
          for (let c = 0; c < width; c++) expected[row * width + c] += values[i * width + c]
        }
        const sums = tf.tidy(() =>
          tf
            .scatterND(
              tf.tensor2d(indices, [indices.length, 1], 'int32'),
              tf.tensor2d(values, [indices.length, width]),
              [rows, width]
            )
            .dataSync()
        )
        assert.deepEqual(sums, expected)
      }),
      { numRuns: 60 }
    )
  })

  it('multiply with the same bits in every run, for any inner dimension', () => {
    // Small outputs with an inner dimension of 2,000 or more, where the backend would split the inner dimension.
    for (const [rows, inner, columns, isTransposed] of [
      [64, 2048, 64, true],
      [64, 2048, 64, false],
      [1, 4099, 257, false],
      [30, 2001, 5, true]
    ] as const) {
      const random = uniforms(inner)
      const draw = (length: number) => Float32Array.from({ length }, () => 2 * random() - 1)
      const [left, right] = [draw(rows * inner), draw(inner * columns)]
      const a = tf.tensor2d(left, isTransposed ? [inner, rows] : [rows, inner])
      const b = tf.tensor2d(right, [inner, columns])
      const product = () => tf.tidy(() => tf.matMul(a, b, isTransposed).dataSync())
      const first = product()
      for (let run = 0; run < 5; run++) assert.deepEqual(product(), first)
      for (const [row, column] of [
        [0, 0],
        [rows - 1, columns - 1]
      ]) {
        let sum = 0
        for (let k = 0; k < inner; k++) {
          sum += left[isTransposed ? k * rows + row : row * inner + k] * right[k * columns + column]
        }
        assert.ok(Math.abs(first[row * columns + column] - sum) < 1e-3)
      }
      tf.dispose([a, b])
    }
  })

  it('scatter single numbers and blocks unchanged', () => {
    tf.tidy(() => {
      const ids = tf.tensor2d([3, 0, 3], [3, 1], 'int32')
      assert.deepEqual([...tf.scatterND(ids, tf.tensor1d([1, 2, 4]), [4]).dataSync()], [2, 0, 0, 5])
      const corners = tf.tensor2d([0, 1, 1, 0], [2, 2], 'int32')
      assert.deepEqual([...tf.scatterND(corners, tf.tensor1d([7, 8]), [2, 2]).dataSync()], [0, 7, 8, 0])
    })
  })

  it('cast integers and booleans to usable floats', () => {
    tf.tidy(() => {
      for (const dtype of ['int32', 'bool'] as const) {
        const x = tf.cast(tf.tensor2d([1, 0, 1, 0, 0, 1], [2, 3], dtype), 'float32')
        assert.deepEqual(tf.transpose(x).dataSync(), Float32Array.of(1, 0, 0, 0, 1, 1))
      }
      assert.deepEqual(tf.cast(tf.tensor1d([2 ** 24, -7], 'int32'), 'float32').dataSync(), Float32Array.of(2 ** 24, -7))
      assert.deepEqual(tf.cast(tf.tensor1d([2.7, -0.5]), 'int32').dataSync(), Int32Array.of(2, 0))
    })
  })
})

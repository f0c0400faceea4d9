/** BLAS products on the wasm backend equal the backend's products up to rounding. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import * as tf from '#tfjs'
import { openDevice } from '../../../src/device/index.js'
import { randomBits } from '../../../src/nn/random.js'

/** Products with one row or column use another BLAS function. */
const size = fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 40 }))

const products = fc
  .record({
    m: size,
    n: size,
    k: size,
    /** Batch axes; a factor without them is used for all. */
    batch: fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 2 }),
    isBatched: fc.constantFrom([true, true], [true, false], [false, true]),
    transposeA: fc.boolean(),
    transposeB: fc.boolean(),
    seed: fc.nat(1e6)
  })
  .map(({ m, n, k, batch, isBatched, transposeA, transposeB, seed }) => ({
    shapeA: [...axes(batch, isBatched[0]), ...(transposeA ? [k, m] : [m, k])],
    shapeB: [...axes(batch, isBatched[1]), ...(transposeB ? [n, k] : [k, n])],
    transposeA,
    transposeB,
    seed
  }))

function axes(batch: readonly number[], isBatched: boolean): number[] {
  return batch.map(length => (isBatched ? length : 1))
}

function numbers(shape: readonly number[], seed: number): tf.Tensor {
  const values = Float32Array.from(
    { length: tf.util.sizeFromShape([...shape]) },
    (_, i) => randomBits(seed, i) / 2 ** 31
  )
  return tf.tensor(values, [...shape])
}

describe('BLAS matrix products', () => {
  before(async function () {
    const { detail, hasFastProducts } = await openDevice('wasm')
    if (hasFastProducts) return
    console.log(`      skipped: no BLAS was found (${detail}); run admb doctor for instructions`)
    this.skip()
  })
  after(() => openDevice('wasm'))

  it('equal the backend’s for all shapes, transposes and batches', async () => {
    await fc.assert(
      fc.asyncProperty(products, async ({ shapeA, shapeB, transposeA, transposeB, seed }) => {
        const results: { readonly shape: number[]; readonly values: Float32Array }[] = []
        for (const blas of ['none', undefined]) {
          await openDevice('wasm', { blas })
          tf.tidy(() => {
            const [a, b] = [numbers(shapeA, seed), numbers(shapeB, seed + 1)]
            const product = tf.matMul(a, b, transposeA, transposeB)
            results.push({ shape: product.shape, values: product.dataSync() as Float32Array })
          })
        }
        const [own, native] = results
        assert.deepEqual(native.shape, own.shape)
        for (const [i, value] of native.values.entries()) {
          // Numbers are below 2 and sums have at most 40 terms.
          assert.ok(Math.abs(value - own.values[i]) <= 40 * 4 * 2 ** -23, `${value}, not ${own.values[i]}`)
        }
      }),
      { numRuns: 150 }
    )
  })

  it('are correct while the heap grows', async () => {
    await openDevice('wasm')
    const [a, b] = [numbers([64, 64], 1), numbers([64, 64], 2)]
    const before = tf.matMul(a, b)
    const filler = Array.from({ length: 8 }, () => tf.zeros([2048, 2048]))
    const after = tf.matMul(a, b)
    assert.deepEqual(after.dataSync(), before.dataSync())
    tf.dispose([a, b, before, after, ...filler])
  })
})

/** Uploads of tensors to a WebGPU device, if its packages and a driver are installed. */
import assert from 'node:assert/strict'
import * as tf from '#tfjs'
import { openDevice } from '../../../src/device/index.js'
import { needWebgpu } from '../../support/webgpu.js'

describe('uploads to webgpu', function () {
  this.timeout(60_000)

  before(needWebgpu)
  after(() => openDevice('wasm'))

  it('do not see later writes to the array that a tensor was made from', async () => {
    const { sharesHostMemory } = await openDevice('webgpu')
    assert.equal(sharesHostMemory, false)
    const values = Float32Array.of(1, 2, 3)
    const x = tf.tensor1d(values)
    values.fill(7)
    assert.deepEqual(x.dataSync(), Float32Array.of(1, 2, 3))
    x.dispose()
  })

  it('support all types and shared memory, with arrays longer than one chunk', async () => {
    await openDevice('webgpu')
    const length = 2 ** 20 + 5
    const floats = new Float32Array(new SharedArrayBuffer(4 * (length + 1))).subarray(1)
    const integers = new Int32Array(new SharedArrayBuffer(4 * length))
    for (let i = 0; i < length; i++) {
      floats[i] = i / 2
      integers[i] = -i
    }
    const expected = { floats: Float32Array.from(floats), integers: Int32Array.from(integers) }
    tf.tidy(() => {
      const [x, y] = [tf.tensor1d(floats), tf.tensor1d(integers, 'int32')]
      floats.fill(0)
      integers.fill(0)
      assert.deepEqual(x.dataSync(), expected.floats)
      assert.deepEqual(y.dataSync(), expected.integers)
      const picked = tf.where(tf.tensor1d([true, false, true], 'bool'), tf.tensor1d([1, 2, 3]), tf.tensor1d([7, 7, 7]))
      assert.deepEqual(picked.dataSync(), Float32Array.of(1, 7, 3))
    })
  })

  it('do not overwrite a buffer before pending programs have read it', async () => {
    await openDevice('webgpu')
    const length = 1000
    const results: tf.Tensor[] = []
    for (let i = 0; i < 40; i++) {
      const x = tf.tensor1d(new Float32Array(length).fill(i))
      results.push(tf.add(x, 0.5))
      x.dispose()
    }
    for (const [i, result] of results.entries()) {
      assert.deepEqual(result.dataSync(), new Float32Array(length).fill(i + 0.5))
      result.dispose()
    }
  })
})

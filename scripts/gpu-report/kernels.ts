/** Speed of single operations at the shapes of a BERT-large layer, and of transfers to the device and back. */
import * as tf from '#tfjs'
import type { Row } from '../bench/row.js'
import { shapeOf } from './bert-model.js'
import type { Size } from './options.js'

const MEBIBYTE = 2 ** 20
/** Minimum time and number of repetitions of an operation. */
const LEAST_MS = 300
const MOST_REPEATS = 50

export function* kernels(size: Size): Generator<Row> {
  const { width, inner, length, heads, batch } = shapeOf(size)
  const rows = batch * length
  const x = tf.randomNormal([rows, width])
  const weights = tf.randomNormal([width, inner])
  const y = tf.randomNormal([rows, inner])
  const flops = 2 * rows * width * inner
  yield rate('x·W', flops, () => tf.matMul(x, weights))
  yield rate('y·Wᵀ', flops, () => tf.matMul(y, weights, false, true))
  yield rate('xᵀ·y', flops, () => tf.matMul(x, y, true, false))
  tf.dispose([x, weights])
  const queries = tf.randomNormal([batch * heads, length, width / heads])
  const scores = tf.randomNormal([batch * heads, length, length])
  const ofHeads = 2 * batch * length * length * width
  yield rate('q·kᵀ of all heads', ofHeads, () => tf.matMul(queries, queries, false, true))
  yield rate('p·v of all heads', ofHeads, () => tf.matMul(scores, queries))
  yield bandwidth('softmax of all heads', 8 * scores.size, () => tf.softmax(scores))
  tf.dispose([queries, scores])
  yield bandwidth('product of elements', 12 * y.size, () => tf.mul(y, y))
  yield bandwidth('sum over rows by a product with ones', 4 * y.size, () => tf.matMul(tf.ones([1, rows]), y))
  y.dispose()
  const one = tf.scalar(1)
  yield { name: 'smallest operation, on the host', value: 1000 * hostMs(() => tf.add(one, one)), unit: 'µs' }
  const start = performance.now()
  for (let time = 0; time < MOST_REPEATS; time++) one.dataSync()
  yield { name: 'read-back of one number', value: (performance.now() - start) / MOST_REPEATS, unit: 'ms' }
  one.dispose()
  for (const megabytes of size === 'full' ? [1, 4, 16, 64] : [1]) yield* transfers(megabytes)
}

/** Uploads and read-backs. */
function* transfers(megabytes: number): Generator<Row> {
  const bytes = megabytes * MEBIBYTE
  const values = new Float32Array(bytes / 4).fill(1)
  yield bandwidth(`upload of ${megabytes} MiB`, bytes, () => tf.tensor1d(values))
  const tensor = tf.ones([bytes / 4])
  tensor.dataSync()
  const start = performance.now()
  let repeats = 0
  while (performance.now() - start < LEAST_MS) {
    tensor.dataSync()
    repeats++
  }
  const ms = (performance.now() - start) / repeats
  tensor.dispose()
  yield { name: `read-back of ${megabytes} MiB`, value: bytes / ms / 1e6, unit: 'GB/s', details: { ms } }
}

function rate(name: string, flops: number, work: () => tf.Tensor): Row {
  const ms = deviceMs(work)
  return { name, value: flops / ms / 1e9, unit: 'TFLOP/s', details: { ms } }
}

function bandwidth(name: string, bytes: number, work: () => tf.Tensor): Row {
  const ms = deviceMs(work)
  return { name, value: bytes / ms / 1e6, unit: 'GB/s', details: { ms } }
}

/** Milliseconds per call, without the wait for the last result. */
function deviceMs(work: () => tf.Tensor): number {
  const run = () => tf.tidy(work)
  finish(run())
  const waitMs = timed(() => finish(tf.ones([1])))
  let repeats = 1
  for (;;) {
    const ms = timed(() => {
      for (let i = 1; i < repeats; i++) run().dispose()
      finish(run())
    })
    if (ms >= LEAST_MS || repeats >= MOST_REPEATS) return Math.max(ms - waitMs, 0.001) / repeats
    repeats = Math.min(MOST_REPEATS, repeats * 2)
  }
}

/** Milliseconds that the host takes to issue one call. */
function hostMs(work: () => tf.Tensor): number {
  const repeats = 10 * MOST_REPEATS
  let last = work()
  const ms = timed(() => {
    for (let i = 0; i < repeats; i++) {
      last.dispose()
      last = work()
    }
  })
  finish(last)
  return ms / repeats
}

/** Waits until the device has computed the tensor, by reading one number of it. */
function finish(tensor: tf.Tensor): void {
  tf.tidy(() => tf.slice(tf.reshape(tensor, [-1]), [0], [1]).dataSync())
  tensor.dispose()
}

function timed(work: () => void): number {
  const start = performance.now()
  work()
  return performance.now() - start
}

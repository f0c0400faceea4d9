/**
 * Max pooling over non-overlapping squares of size × size, per channel. Incomplete squares at the lower and right edges
 * are ignored. Among equal maxima the first one receives the gradient.
 */
import * as tf from '#tfjs'
import { consume, oneHot, tidyPullback, tidySavedForward } from '../ops.js'
import { formatShape, sizeOf } from '../shape.js'
import { type Layer, ModelError } from '../types.js'

export interface MaxPoolOptions {
  readonly name: string
  /** [height, width, channels] */
  readonly input: readonly number[]
  /** At least 2. */
  readonly size: number
}

/** @throws ModelError if a square is larger than the input */
export function maxPool({ name, input, size }: MaxPoolOptions): Layer {
  const [height, width, channels] = input
  if (size > Math.min(height, width)) {
    throw new ModelError(`layer ${name}: ${size}×${size} is larger than its input, ${formatShape(input)}`)
  }
  const rows = Math.floor(height / size)
  const columns = Math.floor(width / size)
  const output = [rows, columns, channels]
  const cells = size * size

  const forward = (x: tf.Tensor): tf.Tensor => tf.maxPool(x as tf.Tensor4D, size, size, 'valid')

  /** Index within its square of each maximum: [squares, channels]. */
  const argMaxOf = (x: tf.Tensor): tf.Tensor =>
    tf.tidy(() => {
      const samples = x.shape[0]
      const image = tf.slice(x, [0, 0, 0, 0], [samples, rows * size, columns * size, channels])
      const bands = tf.reshape(image, [samples * rows, size, columns, size * channels])
      const squares = tf.reshape(tf.transpose(bands, [0, 2, 1, 3]), [-1, cells, channels])
      return tf.argMax(squares, 1)
    })

  /** Each output's gradient at the position of the maximum, zeros elsewhere. */
  const scatter = (dy: tf.Tensor, maxima: tf.Tensor): tf.Tensor => {
    const samples = dy.shape[0]
    const mask = oneHot(maxima, cells)
    const byCell = consume([mask], () => tf.transpose(mask, [0, 2, 1]))
    const squares = consume([byCell], () => tf.mul(byCell, tf.reshape(dy, [-1, 1, channels])))
    const bands = consume([squares], () =>
      tf.transpose(tf.reshape(squares, [samples * rows, columns, size, size * channels]), [0, 2, 1, 3])
    )
    const image = consume([bands], () => tf.reshape(bands, [samples, rows * size, columns * size, channels]))
    return consume([image], () =>
      tf.pad(image, [
        [0, 0],
        [0, height - rows * size],
        [0, width - columns * size],
        [0, 0]
      ])
    )
  }

  return {
    kind: 'max-pool',
    name,
    weights: [],
    input,
    output,
    activations: [output],
    macs: sizeOf(input),
    initialWeights: () => new Float32Array(0),
    forward,
    forwardSaving: x =>
      tidySavedForward(() => {
        const maxima = argMaxOf(x)
        return { y: forward(x), saved: [consume([maxima], () => tf.reshape(maxima, [-1, ...output]))] }
      }),
    vjp: (x, _weights, dy, _pass, saved) =>
      tidyPullback(() => {
        const maxima = saved === undefined ? argMaxOf(x) : tf.reshape(saved[0], [-1, channels])
        return { dx: scatter(dy, maxima), dWeights: [] }
      })
  }
}

/**
 * The largest number of each square of size × size, for each channel; squares do not overlap, and what is left over at the
 * lower and right edge is not looked at. The gradient goes to the first of equals.
 */
import * as tf from '@tensorflow/tfjs-core'
import { oneHot } from '../one-hot.js'
import { consume, tidyPullback, tidySavedForward } from '../scope.js'
import { sizeOf } from '../shape.js'
import type { Layer } from '../types.js'

export interface MaxPoolOptions {
  readonly name: string
  /** [height, width, channels] */
  readonly input: readonly number[]
  /** At least 2. */
  readonly size: number
}

export function maxPool({ name, input, size }: MaxPoolOptions): Layer {
  const [height, width, channels] = input
  const rows = Math.floor(height / size)
  const columns = Math.floor(width / size)
  const output = [rows, columns, channels]
  const cells = size * size

  const forward = (x: tf.Tensor): tf.Tensor => tf.maxPool(x as tf.Tensor4D, size, size, 'valid')

  /** Which cell of its square each output comes from: [squares, channels]. */
  const winnersIn = (x: tf.Tensor): tf.Tensor =>
    tf.tidy(() => {
      const samples = x.shape[0]
      const whole = tf.slice(x, [0, 0, 0, 0], [samples, rows * size, columns * size, channels])
      const bands = tf.reshape(whole, [samples * rows, size, columns, size * channels])
      const squares = tf.reshape(tf.transpose(bands, [0, 2, 1, 3]), [-1, cells, channels])
      return tf.argMax(squares, 1)
    })

  /** Each output's gradient in its winner's cell, zeros elsewhere. */
  const scatter = (dy: tf.Tensor, winners: tf.Tensor): tf.Tensor => {
    const samples = dy.shape[0]
    const won = oneHot(winners, cells)
    const byCell = consume([won], () => tf.transpose(won, [0, 2, 1]))
    const squares = consume([byCell], () => tf.mul(byCell, tf.reshape(dy, [-1, 1, channels])))
    const bands = consume([squares], () =>
      tf.transpose(tf.reshape(squares, [samples * rows, columns, size, size * channels]), [0, 2, 1, 3])
    )
    const whole = consume([bands], () => tf.reshape(bands, [samples, rows * size, columns * size, channels]))
    return consume([whole], () =>
      tf.pad(whole, [
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
        const winners = winnersIn(x)
        return { y: forward(x), saved: [consume([winners], () => tf.reshape(winners, [-1, ...output]))] }
      }),
    vjp: (x, _weights, dy, _pass, kept) =>
      tidyPullback(() => {
        const winners = kept === undefined ? winnersIn(x) : tf.reshape(kept[0], [-1, channels])
        return { dx: scatter(dy, winners), dWeights: [] }
      })
  }
}

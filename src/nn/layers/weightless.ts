/** Layers without weights: reshaping of samples, max pooling and dropout. */
import * as tf from '#tfjs'
import { consume, multiplyInto, oneHot, tidyPullback, tidySavedForward } from '../ops.js'
import { randomBits } from '../random.js'
import { formatShape, type Layer, ModelError, type Pass, sizeOf } from '../types.js'

/** Layers without weights that change the shape of a sample. */
interface ReshapingOptions {
  readonly name: string
  readonly input: readonly number[]
}

/** Flattens a sample to one axis. */
export function flatten({ name, input }: ReshapingOptions): Layer {
  const size = sizeOf(input)
  return withoutWeights('flatten', name, input, [size], 0, {
    forward: x => tf.reshape(x, [-1, size]),
    backward: dy => tf.reshape(dy, [-1, ...input])
  })
}

/** Mean over positions: [length, width] to [width]. */
export function meanPool({ name, input }: ReshapingOptions): Layer {
  const [length, width] = input
  return withoutWeights('mean-pool', name, input, [width], length * width, {
    forward: x => tf.mean(x, 1),
    backward: dy => {
      const share = tf.div(dy, length)
      return consume([share], () => tf.tile(tf.reshape(share, [-1, 1, width]), [1, length, 1]))
    }
  })
}

/** The vector of the first position: [length, width] to [width]. */
export function firstPool({ name, input }: ReshapingOptions): Layer {
  const [length, width] = input
  return withoutWeights('first-pool', name, input, [width], 0, {
    forward: x => tf.reshape(tf.slice(x, [0, 0, 0], [-1, 1, width]), [-1, width]),
    backward: dy =>
      tf.pad(tf.reshape(dy, [-1, 1, width]), [
        [0, 0],
        [0, length - 1],
        [0, 0]
      ])
  })
}

interface LinearMap {
  forward(x: tf.Tensor): tf.Tensor
  backward(dy: tf.Tensor): tf.Tensor
}

function withoutWeights(
  kind: string,
  name: string,
  input: readonly number[],
  output: readonly number[],
  macs: number,
  { forward, backward }: LinearMap
): Layer {
  return {
    kind,
    name,
    weights: [],
    input,
    output,
    activations: [],
    macs,
    initialWeights: () => new Float32Array(0),
    forward: x => tf.tidy(() => forward(x)),
    forwardSaving: x => ({ y: tf.tidy(() => forward(x)), saved: [] }),
    vjp: (_x, _weights, dy) => ({ dx: tf.tidy(() => backward(dy)), dWeights: [] })
  }
}

/**
 * Max pooling over non-overlapping squares of size × size, per channel. Incomplete squares at the lower and right edges
 * are ignored. Among equal maxima the first one receives the gradient.
 */
interface MaxPoolOptions {
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

/**
 * Dropout (Srivastava et al., 2014): in training each number is zeroed with probability `rate`, and the others are
 * scaled by 1/(1 − rate). The mask is drawn on the host from the pass's seed, so it is the same on every backend and in
 * recomputation.
 */
interface DropoutOptions {
  readonly name: string
  readonly input: readonly number[]
  /** 0 ≤ rate < 1 */
  readonly rate: number
}

export function dropout({ name, input, rate }: DropoutOptions): Layer {
  const threshold = Math.round(rate * 2 ** 32)
  const factor = 1 / (1 - rate)
  const maskFor = ({ shape, size }: tf.Tensor, { training, seed }: Pass): tf.Tensor => {
    const mask = new Float32Array(size)
    for (let i = 0; i < size; i++) mask[i] = !training ? 1 : randomBits(seed, i) < threshold ? 0 : factor
    return tf.tensor(mask, shape)
  }
  return {
    kind: 'dropout',
    name,
    weights: [],
    input,
    output: input,
    activations: [input],
    codes: ['rows'],
    macs: 0,
    initialWeights: () => new Float32Array(0),
    forward(x, _weights, pass) {
      if (!pass.training) return tf.clone(x)
      return multiplyInto(maskFor(x, pass), x)
    },
    forwardSaving: (x, _weights, pass) =>
      tidySavedForward(() => {
        const mask = maskFor(x, pass)
        return { y: tf.mul(x, mask), saved: [mask] }
      }),
    vjp: (_x, _weights, dy, pass, saved) =>
      tidyPullback(() => ({ dx: tf.mul(dy, saved?.[0] ?? maskFor(dy, pass)), dWeights: [] }))
  }
}

/**
 * Layer normalization over the last axis (Ba, Kiros and Hinton, 2016): y = scale·(x − mean)/√(variance + ε) + offset. Only
 * the two statistics of each position are kept; the rest is cheap to compute again.
 */
import * as tf from '@tensorflow/tfjs-core'
import { sumOfRows } from '../products.js'
import { keeping, pullback, spend } from '../scope.js'
import { sizeOf } from '../shape.js'
import type { Layer } from '../types.js'

export interface LayerNormOptions {
  readonly name: string
  readonly input: readonly number[]
  /** ε. Default 1e-5. */
  readonly epsilon?: number
}

export function layerNorm({ name, input, epsilon = 1e-5 }: LayerNormOptions): Layer {
  const width = input[input.length - 1]
  const statistic = [...input.slice(0, -1), 1]
  const forwardKeeping: Layer['forwardKeeping'] = (x, [scale, offset]) =>
    keeping(() => {
      const kept = statisticsOf(x, epsilon)
      const normal = normalized(x, kept)
      const scaled = spend([normal], () => tf.mul(normal, scale))
      return { y: spend([scaled], () => tf.add(scaled, offset)), kept }
    })
  return {
    kind: 'layer-norm',
    name,
    weights: [
      { name: 'scale', shape: [width] },
      { name: 'offset', shape: [width] }
    ],
    input,
    output: input,
    insides: [statistic, statistic],
    multiplyAdds: 4 * sizeOf(input),
    initial: () => new Float32Array(2 * width).fill(1, 0, width),
    forward(x, weights, pass) {
      const { y, kept } = forwardKeeping(x, weights, pass)
      tf.dispose([...kept])
      return y
    },
    forwardKeeping,
    vjp: (x, [scale], dy, _pass, kept) =>
      pullback(() => {
        const statistics = kept ?? statisticsOf(x, epsilon)
        const normal = normalized(x, statistics)
        const dWeights = [tf.tidy(() => sumOfRows(tf.mul(dy, normal))), sumOfRows(dy)]
        const dNormal = tf.mul(dy, scale)
        return { dx: normalizedBack(normal, dNormal, statistics[1]), dWeights }
      })
  }
}

/** Mean and 1/√(variance + ε) along the last axis. */
function statisticsOf(x: tf.Tensor, epsilon: number): [mean: tf.Tensor, inverse: tf.Tensor] {
  const mean = tf.mean(x, -1, true)
  const inverse = tf.tidy(() => {
    const centred = tf.sub(x, mean)
    const square = spend([centred], () => tf.square(centred))
    return tf.rsqrt(tf.add(tf.mean(square, -1, true), epsilon))
  })
  return [mean, inverse]
}

function normalized(x: tf.Tensor, [mean, inverse]: readonly tf.Tensor[]): tf.Tensor {
  const centred = tf.sub(x, mean)
  return spend([centred], () => tf.mul(centred, inverse))
}

/** inverse·(d − mean(d) − n·mean(d·n)) along the last axis; disposes of n and d. */
function normalizedBack(n: tf.Tensor, d: tf.Tensor, inverse: tf.Tensor): tf.Tensor {
  const along = tf.tidy(() => tf.mean(tf.mul(d, n), -1, true))
  const radial = spend([n], () => tf.mul(n, along))
  const level = tf.mean(d, -1, true)
  const centred = spend([d], () => tf.sub(d, level))
  const tangent = spend([centred, radial], () => tf.sub(centred, radial))
  return spend([tangent], () => tf.mul(tangent, inverse))
}

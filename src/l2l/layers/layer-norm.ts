/**
 * Layer normalization over the last axis (Ba, Kiros and Hinton, 2016): y = scale·(x − mean)/√(variance + ε) + offset. Only
 * the two statistics of each position are kept; the rest is cheap to compute again.
 */
import * as tf from '@tensorflow/tfjs-core'
import { native } from '../native.js'
import { meanAlong, sumOfRows } from '../products.js'
import { keeping, pullback, spend } from '../scope.js'
import { sizeOf } from '../shape.js'
import type { Layer, Pullback } from '../types.js'

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
      const known = native<tf.Tensor[]>('LayerNorm', { x, scale, offset }, { epsilon })
      if (known !== undefined) return { y: known[0], kept: known.slice(1) }
      const { centred, mean, inverse } = centredOf(x, epsilon)
      const normal = spend([centred], () => tf.mul(centred, inverse))
      const scaled = spend([normal], () => tf.mul(normal, scale))
      return { y: spend([scaled], () => tf.add(scaled, offset)), kept: [mean, inverse] }
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
        const known = nativeBack(x, scale, dy, epsilon, kept)
        if (known !== undefined) return known
        const { centred, inverse } = kept ? { centred: tf.sub(x, kept[0]), inverse: kept[1] } : centredOf(x, epsilon)
        const normal = spend([centred], () => tf.mul(centred, inverse))
        const dWeights = [tf.tidy(() => sumOfRows(tf.mul(dy, normal))), sumOfRows(dy)]
        const dNormal = tf.mul(dy, scale)
        return { dx: normalizedBack(normal, dNormal, inverse), dWeights }
      })
  }
}

/** By a kernel that makes all three gradients in one go, where the device has it. */
function nativeBack(
  x: tf.Tensor,
  scale: tf.Tensor,
  dy: tf.Tensor,
  epsilon: number,
  kept?: readonly tf.Tensor[]
): Pullback | undefined {
  const statistics = kept ?? native<tf.Tensor[]>('LayerNorm', { x, scale, offset: scale }, { epsilon })?.slice(1)
  if (statistics === undefined) return undefined
  const [mean, inverse] = statistics
  const back = native<tf.Tensor[]>('LayerNormBack', { x, mean, inverse, scale, dy })
  return back && { dx: back[0], dWeights: back.slice(1) }
}

/** x − mean, the mean, and 1/√(variance + ε), along the last axis. */
function centredOf(x: tf.Tensor, epsilon: number) {
  const mean = meanAlong(x)
  const centred = tf.sub(x, mean)
  const inverse = tf.tidy(() => {
    const square = tf.square(centred)
    return tf.rsqrt(
      tf.add(
        spend([square], () => meanAlong(square)),
        epsilon
      )
    )
  })
  return { centred, mean, inverse }
}

/** inverse·(d − mean(d) − n·mean(d·n)) along the last axis; disposes of n and d. */
function normalizedBack(n: tf.Tensor, d: tf.Tensor, inverse: tf.Tensor): tf.Tensor {
  const along = tf.tidy(() => meanAlong(tf.mul(d, n)))
  const radial = spend([n], () => tf.mul(n, along))
  const level = meanAlong(d)
  const centred = spend([d], () => tf.sub(d, level))
  const tangent = spend([centred, radial], () => tf.sub(centred, radial))
  return spend([tangent], () => tf.mul(tangent, inverse))
}

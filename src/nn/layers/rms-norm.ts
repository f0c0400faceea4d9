/** Root mean square normalization (Zhang and Sennrich, 2019) over the last axis: y = scale·x/√(mean(x²) + ε). */
import * as tf from '#tfjs'
import { meanOfLastAxis, sumOfRows } from '../matmul.js'
import { consume, onlyWanted, tidyPullback, tidySavedForward } from '../ops.js'
import { sizeOf } from '../shape.js'
import type { Layer } from '../types.js'
import type { LayerNormOptions } from './layer-norm.js'

export function rmsNorm({ name, input, epsilon = 1e-5 }: LayerNormOptions): Layer {
  const width = input[input.length - 1]
  const inverseOf = (x: tf.Tensor) => tf.tidy(() => tf.rsqrt(tf.add(meanOfLastAxis(tf.square(x)), epsilon)))
  const forwardSaving: Layer['forwardSaving'] = (x, [scale]) =>
    tidySavedForward(() => {
      const inverse = inverseOf(x)
      const normal = tf.mul(x, inverse)
      return { y: consume([normal], () => tf.mul(normal, scale)), saved: [inverse] }
    })
  return {
    kind: 'rms-norm',
    name,
    weights: [{ name: 'scale', shape: [width] }],
    input,
    output: input,
    activations: [[...input.slice(0, -1), 1]],
    macs: 3 * sizeOf(input),
    initialWeights: () => new Float32Array(width).fill(1),
    forward(x, weights, pass) {
      const { y, saved } = forwardSaving(x, weights, pass)
      tf.dispose([...saved])
      return y
    },
    forwardSaving,
    vjp: (x, [scale], dy, { wanted }, saved) =>
      tidyPullback(() => {
        const inverse = saved?.[0] ?? inverseOf(x)
        const normal = tf.mul(x, inverse)
        const dScale = tf.tidy(() => sumOfRows(tf.mul(dy, normal)))
        const d = tf.mul(dy, scale)
        const radial = consume([normal], () => tf.mul(normal, meanOfLastAxis(tf.mul(d, normal))))
        const tangent = consume([d, radial], () => tf.sub(d, radial))
        return { dx: consume([tangent], () => tf.mul(tangent, inverse)), dWeights: onlyWanted([dScale], wanted) }
      })
  }
}

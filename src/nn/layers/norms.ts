/**
 * Normalization over the last axis: layer norm (Ba, Kiros and Hinton, 2016), y = scale·(x − mean)/√(variance + ε) + offset, and
 * root mean square norm (Zhang and Sennrich, 2019), y = scale·x/√(mean(x²) + ε). Only the statistics of each position are saved;
 * the backward pass normalizes the input again.
 */
import { runFused } from '#device'
import * as tf from '#tfjs'
import { consume, meanOfLastAxis, onlyWanted, sumOfRows, tidyPullback, tidySavedForward } from '../ops.js'
import { type Layer, type Pullback, sizeOf } from '../types.js'

interface LayerNormOptions {
  readonly name: string
  readonly input: readonly number[]
  /** ε. @default 1e-5 */
  readonly epsilon?: number
}

export function layerNorm({ name, input, epsilon = 1e-5 }: LayerNormOptions): Layer {
  const width = input[input.length - 1]
  const statistic = [...input.slice(0, -1), 1]
  const forwardSaving: Layer['forwardSaving'] = (x, [scale, offset]) =>
    tidySavedForward(() => {
      const fused = runFused<tf.Tensor[]>('LayerNorm', { x, scale, offset }, { epsilon })
      if (fused !== undefined) return { y: fused[0], saved: fused.slice(1) }
      const { centred, mean, inverse } = centre(x, epsilon)
      const normal = consume([centred], () => tf.mul(centred, inverse))
      const scaled = consume([normal], () => tf.mul(normal, scale))
      return { y: consume([scaled], () => tf.add(scaled, offset)), saved: [mean, inverse] }
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
    activations: [statistic, statistic],
    macs: 4 * sizeOf(input),
    initialWeights: () => new Float32Array(2 * width).fill(1, 0, width),
    forward(x, weights, pass) {
      const { y, saved } = forwardSaving(x, weights, pass)
      tf.dispose([...saved])
      return y
    },
    forwardSaving: forwardSaving,
    vjp: (x, [scale], dy, { wanted }, saved) =>
      tidyPullback(() => {
        const fused = fusedGradients(x, scale, dy, epsilon, saved)
        if (fused !== undefined) return { ...fused, dWeights: onlyWanted(fused.dWeights, wanted) }
        const { centred, inverse } = saved ? { centred: tf.sub(x, saved[0]), inverse: saved[1] } : centre(x, epsilon)
        const normal = consume([centred], () => tf.mul(centred, inverse))
        const dWeights = onlyWanted([tf.tidy(() => sumOfRows(tf.mul(dy, normal))), sumOfRows(dy)], wanted)
        const dNormal = tf.mul(dy, scale)
        return { dx: normalizationGradient(normal, dNormal, inverse), dWeights }
      })
  }
}

/** All three gradients by one fused kernel, if the device has it. */
function fusedGradients(
  x: tf.Tensor,
  scale: tf.Tensor,
  dy: tf.Tensor,
  epsilon: number,
  saved?: readonly tf.Tensor[]
): Pullback | undefined {
  const statistics = saved ?? runFused<tf.Tensor[]>('LayerNorm', { x, scale, offset: scale }, { epsilon })?.slice(1)
  if (statistics === undefined) return undefined
  const [mean, inverse] = statistics
  const gradients = runFused<tf.Tensor[]>('LayerNormBack', { x, mean, inverse, scale, dy })
  return gradients && { dx: gradients[0], dWeights: gradients.slice(1) }
}

/** x − mean, the mean, and 1/√(variance + ε), along the last axis. */
function centre(x: tf.Tensor, epsilon: number) {
  const mean = meanOfLastAxis(x)
  const centred = tf.sub(x, mean)
  const inverse = tf.tidy(() => {
    const square = tf.square(centred)
    return tf.rsqrt(
      tf.add(
        consume([square], () => meanOfLastAxis(square)),
        epsilon
      )
    )
  })
  return { centred, mean, inverse }
}

/** inverse·(d − mean(d) − n·mean(d·n)) along the last axis. Disposes of n and d. */
function normalizationGradient(n: tf.Tensor, d: tf.Tensor, inverse: tf.Tensor): tf.Tensor {
  const projection = tf.tidy(() => meanOfLastAxis(tf.mul(d, n)))
  const radial = consume([n], () => tf.mul(n, projection))
  const mean = meanOfLastAxis(d)
  const centred = consume([d], () => tf.sub(d, mean))
  const tangent = consume([centred, radial], () => tf.sub(centred, radial))
  return consume([tangent], () => tf.mul(tangent, inverse))
}

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

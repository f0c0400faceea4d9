/**
 * Two-dimensional convolution with bias: y = f(x * K + b), samples as [height, width, channels]. The kernel gradient is
 * computed as a convolution of the inputs by the output gradient with samples as channels, because wasm has no kernel
 * for it.
 */
import * as tf from '#tfjs'
import { addTo, asRows, consume, tidyPullback, tidySavedForward } from '../ops.js'
import { glorotUniform } from '../random.js'
import type { Activation } from '../spec/layer-kinds.js'
import { formatShape, type Layer, ModelError, sizeOf } from '../types.js'
import { activate, activateWithSlope } from './dense.js'

interface ConvolutionOptions {
  readonly name: string
  /** [height, width, channels] */
  readonly input: readonly number[]
  readonly filters: number
  /** Height and width of the kernel. */
  readonly size: number
  readonly stride: number
  /** `same`: zero padding so that the output has ⌈height / stride⌉ rows; `valid`: no padding. */
  readonly padding: 'same' | 'valid'
  readonly activation: Activation
}

/** @throws ModelError if the kernel is larger than an unpadded input */
export function convolution(options: ConvolutionOptions): Layer {
  const { name, input, filters, size, stride, padding, activation } = options
  const [height, width, channels] = input
  if (padding === 'valid' && size > Math.min(height, width)) {
    throw new ModelError(`layer ${name}: ${size}×${size} is larger than its input, ${formatShape(input)}`)
  }
  const rows = extentOf(height, size, stride, padding)
  const columns = extentOf(width, size, stride, padding)
  const output = [rows.length, columns.length, filters]

  const linear = (x: tf.Tensor, [kernel, bias]: readonly tf.Tensor[]): tf.Tensor => {
    return addTo(tf.conv2d(x as tf.Tensor4D, kernel as tf.Tensor4D, stride, padding), bias)
  }
  const forwardSaving: Layer['forwardSaving'] = (x, weights) =>
    tidySavedForward(() => {
      const { y, slope } = activateWithSlope(activation, linear(x, weights))
      return { y, saved: slope === undefined ? [] : [slope] }
    })

  /** [size, size, channels, filters] */
  const kernelGradient = (x: tf.Tensor, dz: tf.Tensor): tf.Tensor =>
    tf.tidy(() => {
      const padded = tf.pad(x, [
        [0, 0],
        [rows.before, rows.after],
        [columns.before, columns.after],
        [0, 0]
      ])
      const images = consume([padded], () => tf.transpose(padded, [3, 1, 2, 0])) as tf.Tensor4D
      const kernels = tf.transpose(dz, [1, 2, 0, 3]) as tf.Tensor4D
      const result = consume([images, kernels], () =>
        tf.conv2d(images, kernels, 1, 'valid', 'NHWC', stride)
      ) as tf.Tensor4D
      // With a stride, no output may depend on the last rows.
      const valid = consume([result], () => tf.slice(result, [0, 0, 0, 0], [channels, size, size, filters]))
      return tf.transpose(valid, [1, 2, 0, 3])
    })

  /**
   * A convolution of the spread output gradient with the flipped kernel, not `conv2dTranspose`: that is slower on wasm if
   * there are several channels, and wrong in TensorFlow 2.21 with oneDNN.
   */
  const inputGradient = (kernel: tf.Tensor, dz: tf.Tensor): tf.Tensor =>
    tf.tidy(() => {
      const gradients = spread(dz as tf.Tensor4D, stride)
      const flipped = tf.transpose(tf.reverse(kernel, [0, 1]), [0, 1, 3, 2]) as tf.Tensor4D
      const paddingOf = (length: number, axis: Extent): [number, number] => [
        size - 1 - axis.before,
        length - 1 - (axis.length - 1) * stride + axis.before
      ]
      return tf.conv2d(gradients, flipped, 1, [[0, 0], paddingOf(height, rows), paddingOf(width, columns), [0, 0]])
    })

  return {
    kind: 'convolution',
    name,
    weights: [
      { name: 'kernel', shape: [size, size, channels, filters] },
      { name: 'bias', shape: [filters] }
    ],
    input,
    output,
    activations: activation === 'none' ? [] : [output],
    macs: sizeOf(output) * size * size * channels,
    initialWeights(random) {
      const cells = size * size
      const block = new Float32Array(cells * channels * filters + filters)
      glorotUniform(block.subarray(0, cells * channels * filters), cells * channels, cells * filters, random)
      return block
    },
    forward: (x, weights) => tf.tidy(() => activate(activation, linear(x, weights))),
    forwardSaving: forwardSaving,
    vjp: (x, weights, dy, pass, saved) =>
      tidyPullback(() => {
        const slope = activation === 'none' ? undefined : (saved?.[0] ?? recomputeSlope(x, weights, pass))
        const dz = slope === undefined ? tf.clone(dy) : tf.mul(dy, slope)
        if (saved === undefined) slope?.dispose()
        const isFrozen = pass.wanted?.[0] === 'none'
        const dWeights = isFrozen ? [] : [kernelGradient(x, dz), tf.tidy(() => tf.sum(asRows(dz), 0))]
        const dx = consume([dz], () => inputGradient(weights[0], dz))
        return { dx, dWeights }
      })
  }

  function recomputeSlope(...[x, weights, pass]: Parameters<Layer['forwardSaving']>): tf.Tensor {
    const { y, saved } = forwardSaving(x, weights, pass)
    y.dispose()
    return saved[0]
  }
}

/** Images with `stride - 1` zeros between neighbouring rows and columns. */
function spread(images: tf.Tensor4D, stride: number): tf.Tensor4D {
  if (stride === 1) return images
  const [count, height, width, channels] = images.shape
  const zeros: [number, number][] = [
    [0, 0],
    [0, stride - 1],
    [0, 0]
  ]
  const rows = tf.pad(tf.reshape(images, [count * height, 1, width * channels]), zeros)
  const pixels = tf.pad(tf.reshape(rows, [count * height * stride * width, 1, channels]), zeros)
  const all = tf.reshape(pixels, [count, height * stride, width * stride, channels])
  return tf.slice(
    all,
    [0, 0, 0, 0],
    [count, (height - 1) * stride + 1, (width - 1) * stride + 1, channels]
  ) as tf.Tensor4D
}

/** Number of outputs along one axis, and its zero padding before and after. */
interface Extent {
  readonly length: number
  readonly before: number
  readonly after: number
}

function extentOf(length: number, size: number, stride: number, padding: 'same' | 'valid'): Extent {
  if (padding === 'valid') return { length: Math.floor((length - size) / stride) + 1, before: 0, after: 0 }
  const outputs = Math.ceil(length / stride)
  const zeros = Math.max(0, (outputs - 1) * stride + size - length)
  const before = Math.floor(zeros / 2)
  return { length: outputs, before, after: zeros - before }
}

/**
 * Two-dimensional convolution with bias: y = f(x * K + b), samples as [height, width, channels]. No backend-specific filter
 * gradient is used (wasm has none): the gradient of each of the kernel's cells is one matrix product of the inputs which that
 * cell meets and the outputs they go to, which also spares the memory of all patches at once.
 */
import * as tf from '@tensorflow/tfjs-core'
import { asRows, multiply } from '../products.js'
import { keeping, pullback, spend } from '../scope.js'
import { sizeOf } from '../shape.js'
import type { Layer } from '../types.js'
import { type Activation, activate, activateWithSlope } from './activation.js'
import { glorot } from './initial.js'

export interface ConvolutionOptions {
  readonly name: string
  /** [height, width, channels] */
  readonly input: readonly number[]
  readonly filters: number
  /** Height and width of the kernel. */
  readonly size: number
  readonly stride: number
  /** `same`: zeros around the sample so that the output has ⌈size / stride⌉ rows; `valid`: none. */
  readonly padding: 'same' | 'valid'
  readonly activation: Activation
}

export function convolution(options: ConvolutionOptions): Layer {
  const { name, input, filters, size, stride, padding, activation } = options
  const [height, width, channels] = input
  const rows = extentOf(height, size, stride, padding)
  const columns = extentOf(width, size, stride, padding)
  const output = [rows.length, columns.length, filters]

  const linear = (x: tf.Tensor, [kernel, bias]: readonly tf.Tensor[]): tf.Tensor => {
    const product = tf.conv2d(x as tf.Tensor4D, kernel as tf.Tensor4D, stride, padding)
    return spend([product], () => tf.add(product, bias))
  }
  const forwardKeeping: Layer['forwardKeeping'] = (x, weights) =>
    keeping(() => {
      const { y, slope } = activateWithSlope(activation, linear(x, weights))
      return { y, kept: slope === undefined ? [] : [slope] }
    })

  /** [size, size, channels, filters] */
  const kernelGradient = (x: tf.Tensor, dz: tf.Tensor): tf.Tensor =>
    tf.tidy(() => {
      const wide = tf.pad(x, [
        [0, 0],
        [rows.before, rows.after],
        [columns.before, columns.after],
        [0, 0]
      ])
      const outputs = asRows(dz)
      const cells: tf.Tensor[] = []
      for (let row = 0; row < size; row++) {
        for (let column = 0; column < size; column++) {
          cells.push(tf.tidy(() => multiply(asRows(metBy(wide, row, column)), outputs, true)))
        }
      }
      return spend(cells, () => tf.reshape(tf.stack(cells), [size, size, channels, filters]))
    })

  /** The inputs that the kernel's cell meets, one for each output. */
  const metBy = (wide: tf.Tensor, row: number, column: number): tf.Tensor => {
    const samples = wide.shape[0]
    const toRow = row + (rows.length - 1) * stride + 1
    const toColumn = column + (columns.length - 1) * stride + 1
    return tf.stridedSlice(wide, [0, row, column, 0], [samples, toRow, toColumn, channels], [1, stride, stride, 1])
  }

  return {
    kind: 'convolution',
    name,
    weights: [
      { name: 'kernel', shape: [size, size, channels, filters] },
      { name: 'bias', shape: [filters] }
    ],
    input,
    output,
    insides: activation === 'none' ? [] : [output],
    multiplyAdds: sizeOf(output) * size * size * channels,
    initial(random) {
      const cells = size * size
      const block = new Float32Array(cells * channels * filters + filters)
      glorot(block.subarray(0, cells * channels * filters), cells * channels, cells * filters, random)
      return block
    },
    forward: (x, weights) => tf.tidy(() => activate(activation, linear(x, weights))),
    forwardKeeping,
    vjp: (x, weights, dy, pass, kept) =>
      pullback(() => {
        const slope = activation === 'none' ? undefined : (kept?.[0] ?? slopeAgain(x, weights, pass))
        const dz = slope === undefined ? tf.clone(dy) : tf.mul(dy, slope)
        if (kept === undefined) slope?.dispose()
        const dWeights = [kernelGradient(x, dz), tf.tidy(() => tf.sum(asRows(dz), 0))]
        const shape = x.shape as [number, number, number, number]
        const dx = spend([dz], () =>
          tf.conv2dTranspose(dz as tf.Tensor4D, weights[0] as tf.Tensor4D, shape, stride, padding)
        )
        return { dx, dWeights }
      })
  }

  function slopeAgain(...[x, weights, pass]: Parameters<Layer['forwardKeeping']>): tf.Tensor {
    const { y, kept } = forwardKeeping(x, weights, pass)
    y.dispose()
    return kept[0]
  }
}

/** Outputs along one axis, and the zeros before and after it. */
function extentOf(length: number, size: number, stride: number, padding: 'same' | 'valid') {
  if (padding === 'valid') return { length: Math.floor((length - size) / stride) + 1, before: 0, after: 0 }
  const outputs = Math.ceil(length / stride)
  const zeros = Math.max(0, (outputs - 1) * stride + size - length)
  const before = Math.floor(zeros / 2)
  return { length: outputs, before, after: zeros - before }
}

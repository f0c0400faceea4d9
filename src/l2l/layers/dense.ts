/** A fully connected layer with an optional rectifier: y = max(0, xW + b). */
import * as tf from '@tensorflow/tfjs-core'
import { pullback } from '../scope.js'
import type { Layer } from '../types.js'
import { glorot } from './initial.js'

export interface DenseOptions {
  readonly name: string
  readonly inputs: number
  readonly units: number
  readonly activation: 'relu' | 'none'
}

export function dense({ name, inputs, units, activation }: DenseOptions): Layer {
  const isRectified = activation === 'relu'
  const forward = (x: tf.Tensor, [kernel, bias]: readonly tf.Tensor[]): tf.Tensor =>
    tf.tidy(() => {
      const linear = tf.add(tf.matMul(x as tf.Tensor2D, kernel as tf.Tensor2D), bias)
      return isRectified ? tf.relu(linear) : linear
    })
  return {
    kind: 'dense',
    name,
    weights: [
      { name: 'kernel', shape: [inputs, units] },
      { name: 'bias', shape: [units] }
    ],
    input: [inputs],
    output: [units],
    initial(random) {
      const block = new Float32Array(inputs * units + units)
      glorot(block.subarray(0, inputs * units), inputs, units, random)
      return block
    },
    forward,
    forwardKeeping(x, weights) {
      const y = forward(x, weights)
      return { y, kept: isRectified ? [tf.step(y)] : [] }
    },
    vjp: (x, weights, dy, _pass, kept) =>
      pullback(() => {
        const open = isRectified ? (kept?.[0] ?? tf.step(forward(x, weights))) : undefined
        const dz = open === undefined ? dy : tf.mul(dy, open)
        return {
          dx: tf.matMul(dz as tf.Tensor2D, weights[0] as tf.Tensor2D, false, true),
          dWeights: [tf.matMul(x as tf.Tensor2D, dz as tf.Tensor2D, true, false), tf.sum(dz, 0)]
        }
      })
  }
}

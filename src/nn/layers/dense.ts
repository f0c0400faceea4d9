/** A fully connected layer over the last axis: y = f(xW + b). */
import * as tf from '@tensorflow/tfjs-core'
import { multiplyInto } from '../fused-kernels.js'
import { affine, projectBack, projectionGradients } from '../matmul.js'
import { consume, pullback, saving } from '../scope.js'
import { sizeOf } from '../shape.js'
import type { Activation } from '../spec/model-spec.js'
import type { Layer } from '../types.js'
import { activate, activateWithSlope } from './activation.js'
import { glorot } from './initializers.js'

export interface DenseOptions {
  readonly name: string
  /** Shape of a sample; the last axis is what W is applied to. */
  readonly input: readonly number[]
  readonly units: number
  readonly activation: Activation
  /** Factor of the fresh kernel's numbers. Default 1. */
  readonly gain?: number
}

export function dense({ name, input, units, activation, gain }: DenseOptions): Layer {
  const inputs = input[input.length - 1]
  const output = [...input.slice(0, -1), units]
  const forwardKeeping: Layer['forwardSaving'] = (x, [kernel, bias]) =>
    saving(() => {
      const { y, slope } = activateWithSlope(activation, affine(x, kernel, bias))
      return { y, saved: slope === undefined ? [] : [slope] }
    })
  return {
    kind: 'dense',
    name,
    weights: [
      { name: 'kernel', shape: [inputs, units] },
      { name: 'bias', shape: [units] }
    ],
    input,
    output,
    activations: activation === 'none' ? [] : [output],
    macs: sizeOf(input) * units,
    initial(random) {
      const block = new Float32Array(inputs * units + units)
      glorot(block.subarray(0, inputs * units), inputs, units, random, gain)
      return block
    },
    forward: (x, [kernel, bias]) => tf.tidy(() => activate(activation, affine(x, kernel, bias))),
    forwardSaving: forwardKeeping,
    vjp: (x, weights, dy, pass, kept) =>
      pullback(() => {
        const dz = activation === 'none' ? dy : throughSlope(x, weights, dy, pass, kept)
        const dWeights = projectionGradients(x, dz)
        const spent = dz === dy ? [] : [dz]
        return { dx: consume(spent, () => projectBack(dz, weights[0])), dWeights }
      })
  }

  function throughSlope(...[x, weights, dy, pass, kept]: Parameters<Layer['vjp']>): tf.Tensor {
    if (kept !== undefined) return tf.mul(dy, kept[0])
    const again = forwardKeeping(x, weights, pass)
    again.y.dispose()
    const [slope] = again.saved
    return multiplyInto(slope, dy)
  }
}

/** A fully connected layer over the last axis: y = f(xW + b). */
import * as tf from '@tensorflow/tfjs-core'
import { multiplyInto } from '../fused-kernels.js'
import { affine, projectionGradients, projectTransposed } from '../matmul.js'
import { consume, tidyPullback, tidySavedForward } from '../scope.js'
import { sizeOf } from '../shape.js'
import type { Activation } from '../spec/model-spec.js'
import type { Layer } from '../types.js'
import { activate, activateWithSlope } from './activation.js'
import { glorotUniform } from './initializers.js'

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
  const forwardSaving: Layer['forwardSaving'] = (x, [kernel, bias]) =>
    tidySavedForward(() => {
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
    initialWeights(random) {
      const block = new Float32Array(inputs * units + units)
      glorotUniform(block.subarray(0, inputs * units), inputs, units, random, gain)
      return block
    },
    forward: (x, [kernel, bias]) => tf.tidy(() => activate(activation, affine(x, kernel, bias))),
    forwardSaving: forwardSaving,
    vjp: (x, weights, dy, pass, kept) =>
      tidyPullback(() => {
        const dz = activation === 'none' ? dy : activationGradient(x, weights, dy, pass, kept)
        const dWeights = projectionGradients(x, dz)
        const spent = dz === dy ? [] : [dz]
        return { dx: consume(spent, () => projectTransposed(dz, weights[0])), dWeights }
      })
  }

  function activationGradient(...[x, weights, dy, pass, kept]: Parameters<Layer['vjp']>): tf.Tensor {
    if (kept !== undefined) return tf.mul(dy, kept[0])
    const again = forwardSaving(x, weights, pass)
    again.y.dispose()
    const [slope] = again.saved
    return multiplyInto(slope, dy)
  }
}

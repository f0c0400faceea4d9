/** A fully connected layer over the last axis: y = f(xW + b). */
import * as tf from '#tfjs'
import { affine, projectionGradients, projectTransposed } from '../matmul.js'
import { consume, multiplyInto, tidyPullback, tidySavedForward } from '../ops.js'
import { glorotUniform } from '../random.js'
import { sizeOf } from '../shape.js'
import type { Activation } from '../spec/layer-kinds.js'
import type { Layer } from '../types.js'
import { activate, activateWithSlope } from './activation.js'

export interface DenseOptions {
  readonly name: string
  /** Shape of a sample; W is applied to the last axis. */
  readonly input: readonly number[]
  readonly units: number
  readonly activation: Activation
  /** Factor of the initial kernel. @default 1 */
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
    vjp: (x, weights, dy, pass, saved) =>
      tidyPullback(() => {
        const dz = activation === 'none' ? dy : activationGradient(x, weights, dy, pass, saved)
        const dWeights = projectionGradients(x, dz, pass.wanted)
        const consumed = dz === dy ? [] : [dz]
        return { dx: consume(consumed, () => projectTransposed(dz, weights[0])), dWeights }
      })
  }

  function activationGradient(...[x, weights, dy, pass, saved]: Parameters<Layer['vjp']>): tf.Tensor {
    if (saved !== undefined) return tf.mul(dy, saved[0])
    const recomputed = forwardSaving(x, weights, pass)
    recomputed.y.dispose()
    const [slope] = recomputed.saved
    return multiplyInto(slope, dy)
  }
}

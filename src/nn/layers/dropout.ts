/**
 * Dropout (Srivastava et al., 2014): in training each number is zeroed with probability `rate`, and the others are
 * scaled by 1/(1 − rate). The mask is drawn on the host from the pass's seed, so it is the same on every backend and in
 * recomputation.
 */
import * as tf from '#tfjs'
import { multiplyInto, tidyPullback, tidySavedForward } from '../ops.js'
import { randomBits } from '../random.js'
import type { Layer, Pass } from '../types.js'

export interface DropoutOptions {
  readonly name: string
  readonly input: readonly number[]
  /** 0 ≤ rate < 1 */
  readonly rate: number
}

export function dropout({ name, input, rate }: DropoutOptions): Layer {
  const threshold = Math.round(rate * 2 ** 32)
  const factor = 1 / (1 - rate)
  const maskFor = ({ shape, size }: tf.Tensor, { training, seed }: Pass): tf.Tensor => {
    const mask = new Float32Array(size)
    for (let i = 0; i < size; i++) mask[i] = !training ? 1 : randomBits(seed, i) < threshold ? 0 : factor
    return tf.tensor(mask, shape)
  }
  return {
    kind: 'dropout',
    name,
    weights: [],
    input,
    output: input,
    activations: [input],
    macs: 0,
    initialWeights: () => new Float32Array(0),
    forward(x, _weights, pass) {
      if (!pass.training) return tf.clone(x)
      return multiplyInto(maskFor(x, pass), x)
    },
    forwardSaving: (x, _weights, pass) =>
      tidySavedForward(() => {
        const mask = maskFor(x, pass)
        return { y: tf.mul(x, mask), saved: [mask] }
      }),
    vjp: (_x, _weights, dy, pass, saved) =>
      tidyPullback(() => ({ dx: tf.mul(dy, saved?.[0] ?? maskFor(dy, pass)), dWeights: [] }))
  }
}

/** Layers without weights that only change the shape between others. */
import * as tf from '@tensorflow/tfjs-core'
import { consume } from '../scope.js'
import { sizeOf } from '../shape.js'
import type { Layer } from '../types.js'

export interface ReshapingOptions {
  readonly name: string
  readonly input: readonly number[]
}

/** All of a sample's numbers in one row. */
export function flatten({ name, input }: ReshapingOptions): Layer {
  const size = sizeOf(input)
  return withoutWeights('flatten', name, input, [size], 0, {
    forward: x => tf.reshape(x, [-1, size]),
    back: dy => tf.reshape(dy, [-1, ...input])
  })
}

/** [length, width] to [width]: the mean over positions. */
export function meanPool({ name, input }: ReshapingOptions): Layer {
  const [length, width] = input
  return withoutWeights('mean-pool', name, input, [width], length * width, {
    forward: x => tf.mean(x, 1),
    back: dy => {
      const share = tf.div(dy, length)
      return consume([share], () => tf.tile(tf.reshape(share, [-1, 1, width]), [1, length, 1]))
    }
  })
}

interface LinearMap {
  forward(x: tf.Tensor): tf.Tensor
  back(dy: tf.Tensor): tf.Tensor
}

function withoutWeights(
  kind: string,
  name: string,
  input: readonly number[],
  output: readonly number[],
  macs: number,
  { forward, back }: LinearMap
): Layer {
  return {
    kind,
    name,
    weights: [],
    input,
    output,
    activations: [],
    macs: macs,
    initialWeights: () => new Float32Array(0),
    forward: x => tf.tidy(() => forward(x)),
    forwardSaving: x => ({ y: tf.tidy(() => forward(x)), saved: [] }),
    vjp: (_x, _weights, dy) => ({ dx: tf.tidy(() => back(dy)), dWeights: [] })
  }
}

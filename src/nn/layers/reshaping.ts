/** Layers without weights that change the shape of a sample. */
import * as tf from '#tfjs'
import { consume } from '../ops.js'
import { sizeOf } from '../shape.js'
import type { Layer } from '../types.js'

export interface ReshapingOptions {
  readonly name: string
  readonly input: readonly number[]
}

/** Flattens a sample to one axis. */
export function flatten({ name, input }: ReshapingOptions): Layer {
  const size = sizeOf(input)
  return withoutWeights('flatten', name, input, [size], 0, {
    forward: x => tf.reshape(x, [-1, size]),
    backward: dy => tf.reshape(dy, [-1, ...input])
  })
}

/** Mean over positions: [length, width] to [width]. */
export function meanPool({ name, input }: ReshapingOptions): Layer {
  const [length, width] = input
  return withoutWeights('mean-pool', name, input, [width], length * width, {
    forward: x => tf.mean(x, 1),
    backward: dy => {
      const share = tf.div(dy, length)
      return consume([share], () => tf.tile(tf.reshape(share, [-1, 1, width]), [1, length, 1]))
    }
  })
}

/** The vector of the first position: [length, width] to [width]. */
export function firstPool({ name, input }: ReshapingOptions): Layer {
  const [length, width] = input
  return withoutWeights('first-pool', name, input, [width], 0, {
    forward: x => tf.reshape(tf.slice(x, [0, 0, 0], [-1, 1, width]), [-1, width]),
    backward: dy =>
      tf.pad(tf.reshape(dy, [-1, 1, width]), [
        [0, 0],
        [0, length - 1],
        [0, 0]
      ])
  })
}

interface LinearMap {
  forward(x: tf.Tensor): tf.Tensor
  backward(dy: tf.Tensor): tf.Tensor
}

function withoutWeights(
  kind: string,
  name: string,
  input: readonly number[],
  output: readonly number[],
  macs: number,
  { forward, backward }: LinearMap
): Layer {
  return {
    kind,
    name,
    weights: [],
    input,
    output,
    activations: [],
    macs,
    initialWeights: () => new Float32Array(0),
    forward: x => tf.tidy(() => forward(x)),
    forwardSaving: x => ({ y: tf.tidy(() => forward(x)), saved: [] }),
    vjp: (_x, _weights, dy) => ({ dx: tf.tidy(() => backward(dy)), dWeights: [] })
  }
}

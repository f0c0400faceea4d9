/**
 * Token numbers to vectors: y[i] = tokens[x[i]] + positions[i]. The gradient is scattered back by `ScatterNd`, which adds up
 * what falls on the same token, and which every backend has (wasm has no `UnsortedSegmentSum`).
 */
import * as tf from '@tensorflow/tfjs-core'
import { addTo } from '../fused-kernels.js'
import { tidyPullback } from '../scope.js'
import type { Layer } from '../types.js'
import { uniformWeights } from './initializers.js'

export interface EmbeddingOptions {
  readonly name: string
  readonly vocabulary: number
  /** Tokens a sample. */
  readonly length: number
  readonly width: number
}

/** Standard deviation of fresh vectors, as in GPT-2. */
const DEVIATION = 0.02

export function embedding({ name, vocabulary, length, width }: EmbeddingOptions): Layer {
  const forward: Layer['forward'] = (x, [tokens, positions]) =>
    tf.tidy(() => {
      const places = tf.cast(x, 'int32')
      return addTo(tf.gather(tokens, places), positions)
    })
  return {
    kind: 'embedding',
    name,
    weights: [
      { name: 'tokens', shape: [vocabulary, width] },
      { name: 'positions', shape: [length, width] }
    ],
    input: [length],
    output: [length, width],
    activations: [],
    macs: 0,
    initialWeights: random => uniformWeights(new Float32Array((vocabulary + length) * width), DEVIATION, random),
    forward,
    forwardSaving: (x, weights, pass) => ({ y: forward(x, weights, pass), saved: [] }),
    vjp: (x, _weights, dy) =>
      tidyPullback(() => {
        const places = tf.reshape(tf.cast(x, 'int32'), [-1, 1])
        const rows = tf.reshape(dy, [-1, width])
        return {
          dx: undefined,
          dWeights: [tf.scatterND(places as tf.Tensor2D, rows, [vocabulary, width]), tf.sum(dy, 0)]
        }
      })
  }
}

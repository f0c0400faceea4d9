/**
 * Token and position embeddings: y[i] = tokens[x[i]] + positions[i]. The gradient is computed by `ScatterNd`, which
 * sums updates of the same token and exists on every backend (wasm has no `UnsortedSegmentSum`).
 */
import * as tf from '#tfjs'
import { addTo, tidyPullback } from '../ops.js'
import { uniformWeights } from '../random.js'
import type { Layer } from '../types.js'

export interface EmbeddingOptions {
  readonly name: string
  readonly vocabulary: number
  /** Tokens per sample. */
  readonly length: number
  readonly width: number
}

/** Standard deviation of the initial vectors, as in GPT-2. */
const DEVIATION = 0.02

export function embedding({ name, vocabulary, length, width }: EmbeddingOptions): Layer {
  const forward: Layer['forward'] = (x, [tokens, positions]) =>
    tf.tidy(() => {
      const ids = tf.cast(x, 'int32')
      return addTo(tf.gather(tokens, ids), positions)
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
        const ids = tf.reshape(tf.cast(x, 'int32'), [-1, 1])
        const rows = tf.reshape(dy, [-1, width])
        return {
          dx: undefined,
          dWeights: [tf.scatterND(ids as tf.Tensor2D, rows, [vocabulary, width]), tf.sum(dy, 0)]
        }
      })
  }
}

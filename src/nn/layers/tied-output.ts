/**
 * The output layer of language models whose scores use the token matrix of the embedding (Press and Wolf, "Using the Output
 * Embedding to Improve Language Models", 2017), as in GPT-2: y = x·tokensᵀ. The matrix is a weight of the embedding, whose
 * gradient is the sum of both.
 */
import * as tf from '#tfjs'
import { asRows, multiply, project, projectTransposed } from '../matmul.js'
import { tidyPullback } from '../ops.js'
import { type Layer, ModelError } from '../types.js'

export interface TiedOutputOptions {
  readonly name: string
  /** [length, width] */
  readonly input: readonly number[]
  /** The first layer of the model. */
  readonly first: Layer | undefined
}

/** @throws ModelError if the first layer is not an embedding of the same width */
export function tiedOutput({ name, input: [length, width], first }: TiedOutputOptions): Layer {
  const tokens = first?.kind === 'embedding' ? first.weights[0] : undefined
  if (tokens === undefined || tokens.shape[1] !== width) {
    throw new ModelError(`layer ${name} needs an embedding of width ${width} as the first layer`)
  }
  const [vocabulary] = tokens.shape
  const forward: Layer['forward'] = (x, [tokens]) => projectTransposed(x, tokens)
  return {
    kind: 'tied-output',
    name,
    weights: [],
    shares: [{ layer: 0, weight: 0, shape: tokens.shape }],
    input: [length, width],
    output: [length, vocabulary],
    activations: [],
    macs: length * width * vocabulary,
    initialWeights: () => new Float32Array(0),
    forward,
    forwardSaving: (x, weights, pass) => ({ y: forward(x, weights, pass), saved: [] }),
    vjp: (x, [tokens], dy) =>
      tidyPullback(() => ({
        dx: project(dy, tokens),
        dWeights: [tf.tidy(() => multiply(asRows(dy), asRows(x), true, false))]
      }))
  }
}

/**
 * The output layer of language models: y = x·tokensᵀ, scores of all tokens without bias. The matrix may be the token matrix of the
 * embedding (Press and Wolf, "Using the Output Embedding to Improve Language Models", 2017), as in GPT-2; its gradient is then the sum
 * of both.
 */
import { kernelGradients, project, projectTransposed } from '../matmul.js'
import { tidyPullback } from '../ops.js'
import { uniformWeights } from '../random.js'
import { sizeOf } from '../shape.js'
import { type Layer, ModelError } from '../types.js'

export interface TokenOutputOptions {
  readonly name: string
  /** [length, width] */
  readonly input: readonly number[]
  /** The first layer of the model. */
  readonly first: Layer | undefined
  /** Whether the matrix is that of the embedding. */
  readonly tied: boolean
}

/** Standard deviation of the initial vectors, as of embeddings. */
const DEVIATION = 0.02

/** @throws ModelError if the first layer is not an embedding of the same width */
export function tokenOutput({ name, input: [length, width], first, tied }: TokenOutputOptions): Layer {
  const tokens = first?.kind === 'embedding' ? first.weights[0] : undefined
  if (tokens === undefined || tokens.shape[1] !== width) {
    throw new ModelError(`layer ${name} needs an embedding of width ${width} as the first layer`)
  }
  const { shape } = tokens
  const forward: Layer['forward'] = (x, [tokens]) => projectTransposed(x, tokens)
  return {
    kind: 'token-output',
    name,
    weights: tied ? [] : [{ name: 'tokens', shape }],
    shares: tied ? [{ layer: 0, weight: 0, shape }] : undefined,
    input: [length, width],
    output: [length, shape[0]],
    activations: [],
    macs: length * sizeOf(shape),
    initialWeights: random => uniformWeights(new Float32Array(tied ? 0 : sizeOf(shape)), DEVIATION, random),
    forward,
    forwardSaving: (x, weights, pass) => ({ y: forward(x, weights, pass), saved: [] }),
    vjp: (x, [tokens], dy, { wanted = [] }) =>
      tidyPullback(() => ({
        dx: project(dy, tokens),
        dWeights: kernelGradients(dy, x, wanted[0])
      }))
  }
}

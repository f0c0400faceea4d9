/**
 * Token and position embeddings: y[i] = tokens[x[i]] + positions[i], and with segments + segments[s], where s is 0 up to the
 * first separator and 1 after it, as for the two texts of a pair in BERT. Gradients are computed by `ScatterNd`, which sums
 * updates of the same row and exists on every backend (wasm has no `UnsortedSegmentSum`).
 */
import * as tf from '#tfjs'
import { addTo, consume, kernelGradients, project, projectTransposed, tidyPullback } from '../ops.js'
import { uniformWeights } from '../random.js'
import { type Layer, ModelError, sizeOf, totalSize } from '../types.js'

interface EmbeddingOptions {
  readonly name: string
  readonly vocabulary: number
  /** Tokens per sample. */
  readonly length: number
  readonly width: number
  /** Number of position vectors, at least `length`, or 0 for none. @default length */
  readonly positions?: number
  /** Number of segment vectors. @default none */
  readonly segments?: number
  /** The token that ends the first text of a pair. @default all positions are of segment 0 */
  readonly separator?: number
}

/** Standard deviation of the initial vectors, as in BERT and GPT-2. */
const DEVIATION = 0.02

export function embedding(options: EmbeddingOptions): Layer {
  const { name, vocabulary, length, width, positions: rows = length, segments: segmentCount, separator = -1 } = options
  const weights = [
    { name: 'tokens', shape: [vocabulary, width] },
    ...(rows === 0 ? [] : [{ name: 'positions', shape: [rows, width] }]),
    ...(segmentCount === undefined ? [] : [{ name: 'segments', shape: [segmentCount, width] }])
  ]
  const forward: Layer['forward'] = (x, [tokens, ...others], { cache }) =>
    tf.tidy(() => {
      const ids = tf.cast(x, 'int32')
      const y = tf.gather(tokens, ids)
      return others.length === 0 ? y : withOthers(y, ids, others, cache?.position)
    })
  const withOthers = (sum: tf.Tensor, ids: tf.Tensor, others: readonly tf.Tensor[], first = 0) =>
    tf.tidy(() => {
      const count = ids.shape[1] as number
      const segments = segmentCount === undefined ? undefined : others[others.length - 1]
      const used = rows === 0 || rows === count ? others[0] : tf.slice(others[0], [first, 0], [count, width])
      const y = rows === 0 ? sum : addTo(sum, used)
      if (segments === undefined) return y
      const ofSegments = tf.gather(segments, segmentsOf(ids, separator))
      return consume([ofSegments], () => addTo(y, ofSegments))
    })
  /** Sums of the rows of dy by index. */
  const sumsBy = (indices: tf.Tensor, dy: tf.Tensor, count: number) =>
    tf.tidy(() =>
      tf.scatterND(tf.reshape(indices, [-1, 1]) as tf.Tensor2D, tf.reshape(dy, [-1, width]), [count, width])
    )
  return {
    kind: 'embedding',
    name,
    weights,
    input: [length],
    output: [length, width],
    activations: [],
    macs: 0,
    initialWeights: random => uniformWeights(new Float32Array(totalSize(weights)), DEVIATION, random),
    forward,
    forwardSaving: (x, weights, pass) => ({ y: forward(x, weights, pass), saved: [] }),
    vjp: (x, _weights, dy, { wanted }) =>
      tidyPullback(() => {
        if (wanted?.[0] === 'none') return { dx: undefined, dWeights: [] }
        const ids = tf.cast(x, 'int32')
        const dWeights = [sumsBy(ids, dy, vocabulary)]
        if (rows > 0) dWeights.push(padRows(tf.sum(dy, 0), rows - length))
        if (segmentCount !== undefined) dWeights.push(sumsBy(segmentsOf(ids, separator), dy, segmentCount))
        return { dx: undefined, dWeights }
      })
  }
}

/** The segment of each position. @param ids [batch, length] */
function segmentsOf(ids: tf.Tensor, separator: number): tf.Tensor {
  return tf.tidy(() => {
    const separators = tf.cast(tf.equal(ids, separator), 'int32')
    return tf.cast(tf.greater(tf.cumsum(separators, 1, true), 0), 'int32')
  })
}

/** Disposes of x if there are rows to add. */
function padRows(x: tf.Tensor, count: number): tf.Tensor {
  if (count === 0) return x
  return consume([x], () =>
    tf.pad(x, [
      [0, count],
      [0, 0]
    ])
  )
}

/**
 * The output layer of language models: y = x·tokensᵀ, scores of all tokens without bias. The matrix may be the token matrix of the
 * embedding (Press and Wolf, "Using the Output Embedding to Improve Language Models", 2017), as in GPT-2; its gradient is then the sum
 * of both.
 */
interface TokenOutputOptions {
  readonly name: string
  /** [length, width] */
  readonly input: readonly number[]
  /** The first layer of the model. */
  readonly first: Layer | undefined
  /** Whether the matrix is that of the embedding. */
  readonly tied: boolean
}

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

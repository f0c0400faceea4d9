/**
 * What the nodes learn from: synthetic inputs drawn one at a time from a distribution whose best predictor is known, so that
 * regret can be told without a second pass.
 */
import type { Blocks, Examples, ModelName } from '../src/learner/index.js'
import type { Random } from './engine/random.js'

export const STREAMS = ['logistic', 'least-squares', 'sparse'] as const
export type StreamName = (typeof STREAMS)[number]

export interface Inputs {
  readonly model: ModelName
  readonly dimension: number
  /** The minimiser of the expected loss. */
  readonly optimum: Blocks
  /** The next input, in arrays that the call after it reuses. */
  next(): Examples
}

export interface InputOptions {
  readonly dimension: number
  /** Standard deviation of the noise of `least-squares`. */
  readonly noise: number
}

/** Length of the optimum: neither separable nor hopeless. */
const TRUE_LENGTH = 2
/** Non-zero features of a `sparse` input, like the words of a query. */
const SPARSE_FEATURES = 12

export function createInputs(name: StreamName, options: InputOptions, random: Random): Inputs {
  switch (name) {
    case 'logistic':
      return dense('logistic', options, random)
    case 'least-squares':
      return dense('linear', options, random)
    case 'sparse':
      return sparse(options, random)
    default:
      return name satisfies never
  }
}

/** Standard normal features; P(y = 1) = σ(w*·x), or y = w*·x + noise. */
function dense(model: 'logistic' | 'linear', { dimension, noise }: InputOptions, random: Random): Inputs {
  const weights = direction(dimension, random.fork('optimum'))
  const draw = random.fork('inputs')
  const row = emptyRow(dimension)
  for (let i = 0; i < dimension; i++) row.indices[i] = i
  row.offsets[1] = dimension
  return {
    model,
    dimension,
    optimum: [weights],
    next() {
      let score = 0
      for (let i = 0; i < dimension; i++) {
        const x = draw.normal()
        row.values[i] = x
        score += weights[i] * row.values[i]
      }
      row.labels[0] = model === 'linear' ? score + noise * draw.normal() : Number(draw.next() < sigmoid(score))
      return row
    }
  }
}

/** Binary features whose frequency falls like a power law, as words in queries to a search engine do. */
function sparse({ dimension }: InputOptions, random: Random): Inputs {
  const weights = direction(dimension, random.fork('optimum')).map(
    weight => weight * Math.sqrt(dimension / SPARSE_FEATURES)
  )
  const draw = random.fork('inputs')
  const row = emptyRow(SPARSE_FEATURES)
  row.values.fill(1)
  return {
    model: 'logistic',
    dimension,
    optimum: [weights],
    next() {
      let score = 0
      let count = 0
      while (count < Math.min(SPARSE_FEATURES, dimension)) {
        // Inverse of a distribution function that falls with the logarithm of the rank.
        const feature = Math.min(dimension - 1, Math.floor((dimension + 1) ** draw.next()) - 1)
        if (row.indices.subarray(0, count).includes(feature)) continue
        row.indices[count++] = feature
        score += weights[feature]
      }
      row.offsets[1] = count
      row.labels[0] = Number(draw.next() < sigmoid(score))
      return row
    }
  }
}

function direction(dimension: number, random: Random): Float32Array {
  const weights = Float32Array.from({ length: dimension }, () => random.normal())
  const length = Math.sqrt(weights.reduce((sum, weight) => sum + weight * weight, 0))
  return weights.map(weight => (weight * TRUE_LENGTH) / length)
}

function emptyRow(features: number) {
  return {
    size: 1,
    labels: new Float32Array(1),
    offsets: new Int32Array(2),
    indices: new Int32Array(features),
    values: new Float32Array(features)
  }
}

function sigmoid(score: number): number {
  return 1 / (1 + Math.exp(-score))
}

/** Synthetic streams: dense standard normal features, or sparse binary features. */
import { portableExp } from '../../src/learner/exp.js'
import type { Random } from '../engine/random.js'
import type { Inputs } from './inputs.js'
import { Target, type TargetOptions } from './target.js'

export interface SyntheticOptions extends TargetOptions {
  /** Standard deviation of the noise of `least-squares`. */
  readonly noise: number
}

/** Non-zero features of a `sparse` input. */
const SPARSE_FEATURES = 12

/** Standard normal features; P(y = 1) = σ(w*·x), or y = w*·x + noise. */
export function dense(model: 'logistic' | 'linear', options: SyntheticOptions, random: Random): Inputs {
  const { dimension, noise } = options
  const target = new Target(options, random)
  const draw = random.fork('inputs')
  const row = emptyRow(dimension)
  for (let i = 0; i < dimension; i++) row.indices[i] = i
  row.offsets[1] = dimension
  return {
    model,
    dimension,
    ...optimumOf(target),
    features: dimension,
    next() {
      let score = 0
      for (let i = 0; i < dimension; i++) {
        row.values[i] = draw.normal()
        score += target.weight(i) * row.values[i]
      }
      row.labels[0] = model === 'linear' ? score + noise * draw.normal() : Number(draw.next() < sigmoid(score))
      target.advance()
      return row
    }
  }
}

/** Binary features with power-law frequencies, like the words of search queries; P(y = 1) = σ(w*·x). */
export function sparse(options: SyntheticOptions, random: Random): Inputs {
  const { dimension } = options
  const features = Math.min(SPARSE_FEATURES, dimension)
  const target = new Target(options, random, Math.sqrt(dimension / SPARSE_FEATURES))
  const draw = random.fork('inputs')
  const row = emptyRow(SPARSE_FEATURES)
  row.values.fill(1)
  row.offsets[1] = features
  return {
    model: 'logistic',
    dimension,
    ...optimumOf(target),
    features,
    next() {
      let score = 0
      let count = 0
      while (count < features) {
        // Inverse transform sampling: the distribution function is proportional to the logarithm of the rank.
        const feature = Math.min(dimension - 1, Math.floor((dimension + 1) ** draw.next()) - 1)
        if (row.indices.subarray(0, count).includes(feature)) continue
        row.indices[count++] = feature
        score += target.weight(feature)
      }
      row.labels[0] = Number(draw.next() < sigmoid(score))
      target.advance()
      return row
    }
  }
}

/** The optimum, if it is constant. */
function optimumOf(target: Target): Pick<Inputs, 'optimum' | 'varies'> {
  return target.rotates ? { varies: true } : { optimum: [target.start] }
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
  return 1 / (1 + portableExp(-score))
}

/**
 * The losses of models with one score (the inner product w·x): value, slope and what the score predicts. All are convex
 * and smooth in the score. Kept as plain functions over a kind, so that the same lines serve the pure learner and the
 * trainer's fused loop.
 */

import { portableExp } from './exp.js'

/** `logistic`: log(1 + e^(−ys)). `squared`: ½(s − y)². `hinge`: the quadratically smoothed hinge. y ∈ {−1, +1} for two classes. */
export type ScalarLoss = 'logistic' | 'squared' | 'hinge'

/** 1/(1 + e^(−t)) without overflow for any t. */
export function sigmoid(t: number): number {
  const e = portableExp(-Math.abs(t))
  return (t >= 0 ? 1 : e) / (1 + e)
}

/**
 * Loss of a score against a label (0 or 1 for two classes, the number itself for regression).
 * Smoothed hinge, with t = ys: 0 for t ≥ 1, ½(1 − t)² for 0 < t < 1, ½ − t for t ≤ 0 (Rennie and Srebro, 2005).
 */
export function lossOf(kind: ScalarLoss, score: number, label: number): number {
  switch (kind) {
    case 'logistic': {
      const t = label > 0 ? score : -score
      return Math.log1p(portableExp(-Math.abs(t))) - Math.min(t, 0)
    }
    case 'squared':
      return 0.5 * (score - label) * (score - label)
    case 'hinge': {
      const t = label > 0 ? score : -score
      return t >= 1 ? 0 : t <= 0 ? 0.5 - t : 0.5 * (1 - t) * (1 - t)
    }
    default:
      return kind satisfies never
  }
}

/** Derivative of log(1 + e^(−ys)) by s, y being −1 or +1; without a branch on data, which no processor could foresee. */
export function logisticSlope(score: number, y: number): number {
  return -y / (1 + portableExp(y * score))
}

/** Derivative of the loss by the score. */
export function slopeOf(kind: ScalarLoss, score: number, label: number): number {
  switch (kind) {
    case 'logistic':
      return logisticSlope(score, 2 * label - 1)
    case 'squared':
      return score - label
    case 'hinge': {
      const t = label > 0 ? score : -score
      const slope = t >= 1 ? 0 : t <= 0 ? 1 : 1 - t
      return label > 0 ? -slope : slope
    }
    default:
      return kind satisfies never
  }
}

/**
 * Probability of class 1 for a score: the one for which this score minimises the expected loss (the loss's own link).
 * For the smoothed hinge that is 1/(2 − s) on [0, 1], its mirror image below zero, and 0 or 1 outside (−1, 1).
 */
export function probabilityOf(kind: 'logistic' | 'hinge', score: number): number {
  if (kind === 'logistic') return sigmoid(score)
  const p = 1 / (2 - Math.min(1, Math.abs(score)))
  return score >= 0 ? p : 1 - p
}

/** Index of the largest of `scores`, the first one where several are equal. */
export function largest(scores: Float64Array): number {
  let best = 0
  for (let c = 1; c < scores.length; c++) if (scores[c] > scores[best]) best = c
  return best
}

/** log Σ e^s, stable for scores of any size. */
export function logSumExp(scores: Float64Array): number {
  const top = scores[largest(scores)]
  let sum = 0
  for (let c = 0; c < scores.length; c++) sum += portableExp(scores[c] - top)
  return top + Math.log(sum)
}

/** Turns scores into the derivatives of the log loss by them (probability, less 1 for the label's class); returns Σ of their squares. */
export function slopesInPlace(scores: Float64Array, label: number): number {
  const norm = logSumExp(scores)
  let square = 0
  for (let c = 0; c < scores.length; c++) {
    scores[c] = portableExp(scores[c] - norm) - (c === label ? 1 : 0)
    square += scores[c] * scores[c]
  }
  return square
}

/**
 * The losses of models with one score (the inner product w·x), as a table by model, and the softmax loss. All are convex and
 * smooth in the scores.
 *
 * Standardised regression: the model learns (y − mean)/deviation, so that steps and averages do not depend on its unit.
 * Predictions are in units of the target. Peers must agree on both numbers, so they are rounded: estimates from different rows
 * of one stream then usually agree.
 */

import { portableExp, portableLog, portableLog1p } from '../../numeric/exp.js'
import type { CustomLoss } from '../custom.js'
import type { OutcomeKind } from '../metrics/index.js'
import { OptionError } from '../options.js'

/** The mean and deviation by which the target of a regression is standardised. */
export interface TargetScale {
  readonly mean: number
  /** Above 0. */
  readonly deviation: number
}

/** @throws OptionError */
export function checkTargetScale({ mean, deviation }: TargetScale): void {
  if (Number.isFinite(mean) && Number.isFinite(deviation) && deviation > 0) return
  throw new OptionError(
    `the target scale must be a finite mean and a deviation above 0, such as 190:180, not ${mean}:${deviation}`
  )
}

/** A built-in loss: a custom loss, with what the search for the optimum in hindsight needs. */
export interface ScalarLoss extends CustomLoss {
  predict(score: number): number
  /** Second derivative of `value` by the score; where there is none, an element of the generalised one. */
  curvature(score: number, label: number): number
  /** Whether the loss of separable data decreases towards 0 as the weights grow, so that it has no minimiser. */
  readonly isUnattainedIfSeparable: boolean
}

/** log(1 + e^(−ys)) with y ∈ {−1, +1}. Predicts the probability of class 1. */
export const logistic: ScalarLoss = {
  classifies: true,
  value(score, label) {
    const t = label > 0 ? score : -score
    return portableLog1p(portableExp(-Math.abs(t))) - Math.min(t, 0)
  },
  slope: (score, label) => logisticSlope(score, 2 * label - 1),
  predict: sigmoid,
  curvature: score => sigmoid(score) * sigmoid(-score),
  isUnattainedIfSeparable: true
}

/**
 * Quadratically smoothed hinge (Rennie and Srebro, 2005), with t = ys: 0 for t ≥ 1, ½(1 − t)² for 0 < t < 1, ½ − t for t ≤ 0.
 * Predicts the probability of class 1 for which the score minimises the expected loss: 1/(2 − s) on [0, 1], its mirror image
 * below zero, and 0 or 1 outside (−1, 1).
 */
export const hinge: ScalarLoss = {
  classifies: true,
  value(score, label) {
    const t = label > 0 ? score : -score
    return t >= 1 ? 0 : t <= 0 ? 0.5 - t : 0.5 * (1 - t) * (1 - t)
  },
  slope(score, label) {
    const t = label > 0 ? score : -score
    const slope = t >= 1 ? 0 : t <= 0 ? 1 : 1 - t
    return label > 0 ? -slope : slope
  },
  predict(score) {
    const p = 1 / (2 - Math.min(1, Math.abs(score)))
    return score >= 0 ? p : 1 - p
  },
  curvature(score, label) {
    const t = label > 0 ? score : -score
    return t >= 0 && t <= 1 ? 1 : 0
  },
  isUnattainedIfSeparable: false
}

/** ½(s − y)², for regression. Predicts the score. */
const squared: ScalarLoss = {
  classifies: false,
  value: (score, label) => 0.5 * (score - label) * (score - label),
  slope: (score, label) => score - label,
  predict: score => score,
  curvature: () => 1,
  isUnattainedIfSeparable: false
}

/**
 * The squared error of a standardised target: the score is (prediction − mean)/deviation. `value` is ½(prediction − y)², in the
 * target's units; `slope` is that of ½(score − (y − mean)/deviation)², which differs by the factor deviation².
 */
export function standardised({ mean, deviation }: TargetScale): ScalarLoss {
  const predict = (score: number) => mean + deviation * score
  return {
    ...squared,
    value: (score, label) => squared.value(predict(score), label),
    slope: (score, label) => score - (label - mean) / deviation,
    predict
  }
}

/** The registry of losses by model. A new loss is one entry. */
export const scalarLosses = { logistic, linear: squared, hinge } as const satisfies Readonly<Record<string, ScalarLoss>>

/** 1/(1 + e^(−t)), without overflow for any t. */
function sigmoid(t: number): number {
  const e = portableExp(-Math.abs(t))
  return (t >= 0 ? 1 : e) / (1 + e)
}

/** How the outcomes of a model with one score are encoded. */
export function outcomesOf(loss: CustomLoss): OutcomeKind {
  return { kind: loss.classifies ? 'two-class' : 'number', loss, isLogLoss: loss === logistic }
}

/** Derivative of log(1 + e^(−ys)) by s for y = ±1, without a branch that depends on data. */
export function logisticSlope(score: number, y: number): number {
  return -y / (1 + portableExp(y * score))
}

/** Index of the largest of `scores`, the first one if several are equal. */
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
  return top + portableLog(sum)
}

/**
 * Replaces scores by the derivatives of the log loss (probability, less 1 for the label's class) times a weight.
 * @returns Σ of their squares
 */
export function slopesInPlace(scores: Float64Array, label: number, weight = 1): number {
  const norm = logSumExp(scores)
  let square = 0
  for (let c = 0; c < scores.length; c++) {
    scores[c] = weight * (portableExp(scores[c] - norm) - (c === label ? 1 : 0))
    square += scores[c] * scores[c]
  }
  return square
}

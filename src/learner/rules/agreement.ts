/**
 * How much successive gradients agree. Near the optimum of a stream that does not change, a weight's gradient is independent of its
 * last one. Where the stream drifts, neighbouring labels are alike or the weights are still far off, both tend to have the same sign.
 *
 * The agreement is Σ |h|·s / Σ |h|, between −1 and 1, over the gradients h of about the last 1,000 updates in units of their root mean
 * square, where s is 1 if a gradient has the sign of the weight's last one, and else −1. It is limited: on a target without noise all
 * gradients agree until the steps are too long, and forgetting must end soon after that. Where single gradients make updates, only
 * every fourth one is measured, which takes less time. The signs of gradients adapt step sizes in
 * Rprop (Riedmiller and Braun, 1993), and their products in hypergradient descent (Baydin et al., 2018).
 */
import type { Layout } from '../types.js'

/**
 * Both sums; the share of the 1,000 updates that they contain, so that the agreement of the first steps counts little; and the number of
 * batches in AdaGrad's accumulators, as far as they have not forgotten them.
 */
export const agreementBlock: Layout['blocks'][number] = { name: 'agreement', length: 4 }
const AGREEING = 0
const TOTAL = 1
const SHARE = 2
export const BATCHES = 3

/** The block, in float32 in a predictor. */
export type Agreement = Float32Array | Float64Array

/** Share of the sums that remains after an update that is measured. */
const REMEMBERED = 0.999
/** Updates by single gradients of which one is measured. */
const SINGLES = 4
/** Agreement that is within noise on a stream that does not change. */
const NOISE = 0.07
/** Largest agreement that the sums contain. */
const MOST = 0.25
/** Agreement beyond noise at which accumulators forget as fast as they may. */
const FORGETTING = 0.2
/** Agreement beyond noise at which the average follows as fast as it may. */
const FOLLOWING = 0.05
/** Largest weight of the newest predictor in the average. */
const MAX_WEIGHT = 0.9

/** Share of an accumulator that an update removes. @param most if gradients agree */
export function forgottenShare(agreement: Agreement, most: number): number {
  return most * beyondNoise(agreement, FORGETTING)
}

/** Least weight of the newest predictor in the running average. */
export function leastWeight(agreement: Agreement): number {
  return MAX_WEIGHT * beyondNoise(agreement, FOLLOWING)
}

/** Whether the agreement of the gradients of an update is measured. @param updates number of updates before */
export function measures(count: number, updates: number): boolean {
  return count > 1 || updates % SINGLES === 0
}

/** Counts an update, in place. @param keep share of the accumulators that it has kept */
export function countUpdate(agreement: Agreement, keep: number): void {
  agreement[BATCHES] = keep * agreement[BATCHES] + 1
}

/**
 * Counts the agreement of an update's gradients, in place.
 * @param agreeing sum of s·h, each divided by the root of its accumulator
 * @param total sum of |s·h| likewise
 */
export function measure(agreement: Agreement, agreeing: number, total: number): void {
  // An accumulator is the sum of as many squares.
  const scale = Math.sqrt(agreement[BATCHES])
  agreement[TOTAL] = REMEMBERED * agreement[TOTAL] + scale * total
  const sum = REMEMBERED * agreement[AGREEING] + scale * agreeing
  agreement[AGREEING] = Math.min(sum, MOST * agreement[TOTAL])
  agreement[SHARE] = REMEMBERED * agreement[SHARE] + (1 - REMEMBERED)
}

/** 0 if the agreement is within noise, 1 if it is so much beyond it. */
function beyondNoise(agreement: Agreement, much: number): number {
  const total = agreement[TOTAL]
  if (!(total > 0)) return 0
  return Math.max(0, Math.min(1, ((agreement[AGREEING] / total) * agreement[SHARE] - NOISE) / much))
}

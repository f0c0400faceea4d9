/**
 * Standardised regression: the model learns (y − mean)/deviation, so that steps and averages need not know the unit of the target.
 * Predictions are in units of the target. Peers must agree on both numbers, so they are rounded: estimates from different rows of
 * one stream then usually agree.
 */
import { OptionError } from './errors.js'
import type { Examples } from './types.js'

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

/**
 * The rounded scale of the labels: the nearest power of two to their deviation, and their mean in units of half of it. Equal
 * labels give deviation 1.
 * @returns undefined without labels
 */
export function targetScaleOf({ labels, size }: Pick<Examples, 'labels' | 'size'>): TargetScale | undefined {
  const known = labels.subarray(0, size).filter(Number.isFinite)
  if (known.length === 0) return undefined
  const mean = known.reduce((sum, label) => sum + label, 0) / known.length
  const variance = known.reduce((sum, label) => sum + (label - mean) ** 2, 0) / known.length
  if (variance === 0) return { mean, deviation: 1 }
  const deviation = 2 ** Math.round(Math.log2(variance) / 2)
  return { mean: (deviation / 2) * Math.round((2 * mean) / deviation), deviation }
}

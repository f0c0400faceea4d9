/**
 * Standardised regression: the model learns (y − mean)/deviation, so that steps and averages do not depend on its unit.
 * Predictions are in units of the target. Peers must agree on both numbers, so they are rounded: estimates from different rows of
 * one stream then usually agree.
 */
import { OptionError } from './errors.js'

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

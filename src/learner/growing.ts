/** Models whose layers come in while they learn: what they compute depends on how many updates made the parameters. */
import type { Learner } from './types.js'

/** The learner for parameters that so many updates have made. */
export function learnerAfter(learner: Learner, updates: number): Learner {
  return learner.after?.(updates) ?? learner
}

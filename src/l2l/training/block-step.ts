/** One layer's update, in place: what the param-server does for each layer, on whichever thread. */
import { isFiniteBlock } from '../../base/floats.js'
import { mixInto, type UpdateRule, type WeightedAveraging } from '../../learner/index.js'

/** All that the host keeps of one layer. */
export interface BlockMemory {
  readonly parameters: Float32Array
  /** The same memory as the parameters where no average is kept. */
  readonly average: Float32Array
  /** The rule's state for this block alone. */
  readonly state: readonly Float32Array[]
}

/**
 * @param gradient sum over the minibatch
 * @returns whether the gradient was finite; if not, nothing was changed
 */
export function stepBlock(
  { parameters, average, state }: BlockMemory,
  gradient: Float32Array,
  rule: UpdateRule,
  averaging: WeightedAveraging,
  count: number,
  updates: number
): boolean {
  if (!isFiniteBlock(gradient)) return false
  const now = { parameters: [parameters], state }
  if (rule.stepInPlace !== undefined) rule.stepInPlace(now, [gradient], count, updates)
  else {
    const next = rule.step(now, [gradient], count, updates)
    parameters.set(next.parameters[0])
    for (const [i, block] of state.entries()) block.set(next.state[i])
  }
  if (average !== parameters) mixInto(average, parameters, averaging.weight(updates))
  return true
}

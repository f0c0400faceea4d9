/** One layer's update, in place: what the param-server does for each layer, on whichever thread. */
import type { Averaging, UpdateRule } from '../../learner/index.js'

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
  averaging: Averaging,
  count: number,
  updates: number
): boolean {
  if (!isFiniteBlock(gradient)) return false
  const next = rule.step({ parameters: [parameters], state }, [gradient], count, updates)
  if (average !== parameters) average.set(averaging.average([average], next.parameters, updates)[0])
  parameters.set(next.parameters[0])
  for (const [i, block] of state.entries()) block.set(next.state[i])
  return true
}

export function isFiniteBlock(block: Float32Array): boolean {
  // x − x is 0 for finite x and NaN otherwise, so one sum tells for the whole block.
  let bad = 0
  for (let i = 0; i < block.length; i++) bad += block[i] - block[i]
  return bad === 0
}

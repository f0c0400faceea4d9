/**
 * Step sizes that grow with the batch, so that a step size that suits one batch suits others: in proportion (Goyal et al.,
 * "Accurate, Large Minibatch SGD", 2017), or by the square root, as is usual with Adam (Malladi et al., "On the SDEs and Scaling
 * Rules for Adaptive Gradient Algorithms", NeurIPS 2022).
 */
import { OptionError } from '../errors.js'

export interface ScalingOptions {
  /** Batch that the step size is for. Larger batches have a longer step, smaller ones a shorter one. @default the same step for all */
  readonly reference?: number
  /** How the step grows with the batch. @default 'linear' for momentum and lars, otherwise 'root' */
  readonly scaling?: 'linear' | 'root'
}

/** @param standard how the step grows by default */
export function scalingOptions(standard: 'linear' | 'root') {
  return {
    reference: { default: undefined, min: 1, help: 'batch that the step size is for: it grows with larger batches' },
    scaling: { default: undefined, choices: ['linear', 'root'], help: `how it grows with the batch (${standard})` }
  } as const
}

/**
 * @param rule for messages
 * @returns factor of the step size for a batch of `count` gradients; uses only ÷ and a square root
 * @throws OptionError for a way of scaling without a reference
 */
export function scalingBy(
  rule: string,
  { reference, scaling }: ScalingOptions,
  standard: 'linear' | 'root'
): (count: number) => number {
  if (reference === undefined) {
    if (scaling === undefined) return () => 1
    throw new OptionError(`rule ${rule}: scaling=${scaling} needs reference, the batch that the step size is for`)
  }
  return (scaling ?? standard) === 'linear' ? count => count / reference : count => Math.sqrt(count / reference)
}

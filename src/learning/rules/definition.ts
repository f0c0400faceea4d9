/** What an entry of the registry of update rules consists of. */
import { OptionError, type OptionTable } from '../options.js'
import type { Blocks, Layout, RuleState, UpdateRule } from '../types.js'

/** A rule whose gradients may be shortened. Without `divisor`, the mean gradient is sum / count. */
export interface DividingRule extends UpdateRule {
  step(
    previous: RuleState,
    sum: Blocks,
    count: number,
    updates: number,
    contributors?: number,
    divisor?: number
  ): RuleState
  stepInPlace?(now: RuleState, sum: Blocks, count: number, updates: number, divisor?: number): void
}

/** An update rule with the metadata that the command line, the parameter server and the documentation need. */
export interface RuleDefinition<Options> {
  /** One line for `--rule help`. */
  readonly summary: string
  readonly options: OptionTable<Options>
  /**
   * Whether the rule, with these options, steps each block independently of the others. The parameter server then updates a
   * network's upper layers while its lower layers still run, with the same bits.
   */
  isBlockwise(options: Options): boolean
  /**
   * How the option `bits=8` divides the state: `elementwise` if a step looks at each number alone (counters apart), `blockwise`
   * if it depends on the whole block. Without it, the rule has no such option.
   */
  readonly eightBitState?: 'elementwise' | 'blockwise'
  /** Whether new parameters follow from the state alone, so that a step cannot start at other parameters. @default false */
  readonly isDual?: boolean
  /** @throws OptionError */
  create(options: Options): UpdateRule
  /**
   * What the rule does to whole blocks, around the rule of `create`, which may have eight bits of state.
   * @param layout of the parameters @default all weights are alike
   */
  around?(rule: DividingRule, options: Options, layout: Layout | undefined): UpdateRule
}

/** Derives the pure step of a rule from its in-place step, which the parameter server calls directly. */
export function withPureStep(
  rule: Omit<DividingRule, 'step'> & Required<Pick<DividingRule, 'stepInPlace'>>
): DividingRule & Required<Pick<DividingRule, 'stepInPlace'>> {
  return {
    ...rule,
    step(previous, sum, count, updates, _, divisor) {
      const next = { parameters: copy(previous.parameters), state: copy(previous.state) }
      rule.stepInPlace(next, sum, count, updates, divisor)
      return next
    }
  }
}

function copy(blocks: Blocks): Float32Array[] {
  return blocks.map(block => block.slice())
}

/**
 * Step sizes that grow with the batch, so that a step size that suits one batch suits others: in proportion (Goyal et al.,
 * "Accurate, Large Minibatch SGD", 2017), or by the square root, as is usual with Adam (Malladi et al., "On the SDEs and Scaling
 * Rules for Adaptive Gradient Algorithms", NeurIPS 2022).
 */
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

/** What an entry of the registry of update rules consists of. */
import { copyBlock } from '../../base/memory.js'
import type { OptionTable } from '../options.js'
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
  return blocks.map(copyBlock)
}

/** Update rules by name: the one place where a configuration becomes a rule. */

import { type CustomRuleSpec, customRule, isCustomName } from '../custom.js'
import { OptionError } from '../errors.js'
import type { ModelName } from '../model.js'
import type { UpdateRule } from '../types.js'
import { type AdagradOptions, adagrad } from './adagrad.js'
import { type AdamOptions, adam } from './adam.js'
import { compact, isCompact, type Keeping } from './compact.js'
import { dualAveraging } from './dual-averaging.js'
import { type LambOptions, type LarsOptions, lamb, lars } from './layerwise-rates.js'
import { type MirrorDescentOptions, mirrorDescent } from './mirror-descent.js'
import { type MomentumOptions, momentum } from './momentum.js'
import type { ScheduleOptions } from './schedule.js'

/** Of the rules for networks: bits a number of their state. Default 32; with 8 it takes a third of the memory. */
interface BitsOption {
  readonly bits?: 8 | 32
}

export type RuleSpec = BuiltInRuleSpec | CustomRuleSpec

type BuiltInRuleSpec =
  | ({ readonly name: 'adagrad' } & AdagradOptions)
  | ({ readonly name: 'dual-averaging' } & ScheduleOptions)
  | ({ readonly name: 'mirror-descent' } & MirrorDescentOptions)
  | ({ readonly name: 'momentum' } & MomentumOptions & BitsOption)
  | ({ readonly name: 'adam' } & AdamOptions & BitsOption)
  | ({ readonly name: 'lamb' } & LambOptions & BitsOption)
  | ({ readonly name: 'lars' } & LarsOptions & BitsOption)

export type RuleName = BuiltInRuleSpec['name']
export const ruleNames: readonly RuleName[] = [
  'adagrad',
  'dual-averaging',
  'mirror-descent',
  'momentum',
  'adam',
  'lamb',
  'lars'
]
/** Chosen by measurement: good without tuning on every data set tried, at b = 1, 32 and 512. */
export const defaultRule: RuleSpec = { name: 'adagrad' }

/** For networks, whose layers differ in scale. */
export const defaultNetworkRule: RuleSpec = { name: 'adam' }

/** A rule with what the model's loss lets it add by default: AdaGrad's `promise` of 1 nat means nothing to other units. */
export function ruleFor(model: ModelName, spec: RuleSpec = defaultRule): RuleSpec {
  return spec.name === 'adagrad' && model !== 'linear' ? { maxLossDecrease: 1, ...spec } : spec
}

/** @throws OptionError for an unknown name or option, or a value out of range */
export function createRule(spec: RuleSpec = defaultRule): UpdateRule {
  if (isCustomRule(spec)) return customRule(spec)
  switch (spec.name) {
    case 'adagrad':
      return adagrad(spec)
    case 'dual-averaging':
      return dualAveraging(spec)
    case 'mirror-descent':
      return mirrorDescent(spec)
    case 'momentum':
      return withBits(spec, momentum)
    case 'adam':
      return withBits(spec, adam)
    case 'lamb':
      return withBits(spec, lamb)
    case 'lars':
      return withBits(spec, lars)
    default:
      throw new OptionError(
        `unknown rule ${String((spec satisfies never as RuleSpec).name)}: use one of ${ruleNames.join(', ')}`
      )
  }
}

function withBits<Options extends BitsOption & { readonly name: string }>(
  { bits, ...options }: Options,
  create: (options: Omit<Options, 'bits'>) => UpdateRule
): UpdateRule {
  const rule = create(options)
  return isCompact(rule.name, { ...options, bits }) ? compact(rule, keepingOf, !isScaledToBlocks(options.name)) : rule
}

/** Whether a step's size depends on the block's. */
function isScaledToBlocks(rule: string): boolean {
  return rule === 'lamb' || rule === 'lars'
}

/** Means and velocities have signs, squares have none, and counters stay as they are. */
function keepingOf(stateBlock: string): Keeping {
  if (stateBlock.endsWith('.mean') || stateBlock.endsWith('.velocity')) return 'signed'
  return stateBlock.endsWith('.square') ? 'squares' : 'plain'
}

export function isCustomRule(spec: RuleSpec): spec is CustomRuleSpec {
  return isCustomName(spec.name)
}

/** Update rules by name: the one place where a configuration becomes a rule. */
import { OptionError } from '../errors.js'
import type { ModelName } from '../model.js'
import { isOwnName, type OwnRuleSpec, ownRule } from '../own.js'
import type { UpdateRule } from '../types.js'
import { type AdagradOptions, adagrad } from './adagrad.js'
import { type AdamOptions, adam } from './adam.js'
import { dualAveraging } from './dual-averaging.js'
import { type MirrorDescentOptions, mirrorDescent } from './mirror-descent.js'
import { type MomentumOptions, momentum } from './momentum.js'
import type { ScheduleOptions } from './schedule.js'
import { type LambOptions, type LarsOptions, lamb, lars } from './trust.js'

export type RuleSpec = BuiltInRuleSpec | OwnRuleSpec

type BuiltInRuleSpec =
  | ({ readonly name: 'adagrad' } & AdagradOptions)
  | ({ readonly name: 'dual-averaging' } & ScheduleOptions)
  | ({ readonly name: 'mirror-descent' } & MirrorDescentOptions)
  | ({ readonly name: 'momentum' } & MomentumOptions)
  | ({ readonly name: 'adam' } & AdamOptions)
  | ({ readonly name: 'lamb' } & LambOptions)
  | ({ readonly name: 'lars' } & LarsOptions)

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
  return spec.name === 'adagrad' && model !== 'linear' ? { promise: 1, ...spec } : spec
}

/** @throws OptionError for an unknown name or option, or a value out of range */
export function createRule(spec: RuleSpec = defaultRule): UpdateRule {
  if (isOwnRule(spec)) return ownRule(spec)
  switch (spec.name) {
    case 'adagrad':
      return adagrad(spec)
    case 'dual-averaging':
      return dualAveraging(spec)
    case 'mirror-descent':
      return mirrorDescent(spec)
    case 'momentum':
      return momentum(spec)
    case 'adam':
      return adam(spec)
    case 'lamb':
      return lamb(spec)
    case 'lars':
      return lars(spec)
    default:
      throw new OptionError(
        `unknown rule ${String((spec satisfies never as RuleSpec).name)}: use one of ${ruleNames.join(', ')}`
      )
  }
}

export function isOwnRule(spec: RuleSpec): spec is OwnRuleSpec {
  return isOwnName(spec.name)
}

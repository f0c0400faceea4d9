/** The registry of update rules. A new rule is one file and one line of `rules`. */
import { type CustomRuleSpec, customRule, isCustomName } from '../custom.js'
import { isClassifier, type ModelName } from '../models/model.js'
import { checkOptions, named, OptionError, type OptionTable } from '../options.js'
import type { BlockLayout, Layout, UpdateRule } from '../types.js'
import { adagrad, adagradValues } from './adagrad.js'
import { adam, adamw } from './adam.js'
import { compact, isCompact } from './compact.js'
import type { RuleDefinition } from './definition.js'
import { firstFor, type LayerRule, layerRule } from './layers.js'
import { lamb, lars, momentum } from './layerwise-rates.js'
import { dualAveraging, mirrorDescent } from './paper.js'

/** A definition with any options. */
type Entry = Omit<RuleDefinition<never>, 'options'> & { readonly options: OptionTable<object> }

export const rules = {
  adagrad,
  'dual-averaging': dualAveraging,
  'mirror-descent': mirrorDescent,
  momentum,
  adam,
  adamw,
  lamb,
  lars
} as const satisfies Readonly<Record<string, Entry>>

type Rules = typeof rules
/** Name of a built-in update rule. */
export type RuleName = keyof Rules
export const ruleNames = Object.keys(rules) as readonly RuleName[]

/** Bits of each number of the state of rules with `eightBitState`. 8 takes a third of the memory. @default 32 */
export interface BitsOption {
  readonly bits?: 8 | 32
}

type OptionsOf<Rule> = Rule extends RuleDefinition<infer Options> ? Options : never

/** A rule with its options, as plain data. */
export type RuleSpec = SingleRuleSpec | LayerRulesSpec

/** One rule. */
export type SingleRuleSpec =
  | { [Name in RuleName]: { readonly name: Name } & OptionsOf<Rules[Name]> & BitsOption }[RuleName]
  | CustomRuleSpec

/** A rule for each layer of a network: the first entry that fits a layer is its rule. */
export interface LayerRulesSpec {
  readonly name: 'layers'
  readonly rules: readonly LayerRule<SingleRuleSpec>[]
}

/** The default for linear models. Chosen by measurement: good without tuning on every data set tried, at b = 1, 32 and 512. */
export const defaultRule: RuleSpec = { name: 'adagrad' }

/** The default for networks, whose layers differ in scale. */
export const defaultNetworkRule: RuleSpec = { name: 'adam' }

/**
 * Defaults for regression, whose loss is as steep as its features are long: the usual ones diverge at b = 1 on a few dozen
 * standardised columns.
 */
const regressionDefaults: Readonly<Record<string, object>> = {
  momentum: { step: 0.001 },
  'dual-averaging': { L: 64 },
  'mirror-descent': { L: 64 }
}

/** Chosen by measurement: good on streams that drift, and without effect on those that do not (docs/results/benchmarks.md). */
const MAX_FORGET = 0.05

/**
 * A linear model's rule, with the defaults that depend on the model. AdaGrad's `maxLossDecrease` defaults to 1 nat for
 * classification, and to no limit for regression. Its `maxForget` defaults to 0.05, unless `forget` is given.
 */
export function ruleFor(model: ModelName, spec: RuleSpec = defaultRule): RuleSpec {
  if (spec.name !== 'adagrad') return isClassifier(model) ? spec : { ...regressionDefaults[spec.name], ...spec }
  return {
    ...(isClassifier(model) && { maxLossDecrease: 1 }),
    ...(spec.forget === undefined && { maxForget: MAX_FORGET }),
    ...spec
  }
}

/**
 * Features of a row up to which AdaGrad's default step and `maxForget` are good. The first steps change a score by as much as
 * their number times the step.
 */
const USUAL_FEATURES = 22
/** Gradients in the window of forgetting, for each feature of a row. */
const WINDOW = 4

/**
 * The default rule of one learner. Rows with many features have shorter steps, and forget more slowly. Chosen by measurement
 * (docs/results/benchmarks.md).
 * @param features mean number of features of a row, without the constant one @default few
 */
export function ruleForRows(model: ModelName, features = 0): RuleSpec | undefined {
  if (features <= USUAL_FEATURES || !isClassifier(model)) return undefined
  const step = (adagradValues({}).step * USUAL_FEATURES) / features
  return { name: 'adagrad', step: rounded(step), maxForget: rounded(1 / (WINDOW * features)) }
}

/** Two digits, which say enough. */
function rounded(value: number): number {
  return Number(value.toPrecision(2))
}

/** The type of the option `rule`. */
export const ruleType = named<RuleSpec>(defaultRule.name)

/**
 * Creates an update rule.
 * @example
 * const rule = createRule({ name: 'adam', step: 0.01 })
 * const state = rule.stateLayout({ blocks: [{ name: 'w', length: 3 }] })
 * @param layout of the parameters, for rules that treat biases, norms or layers differently @default all weights are alike
 * @throws OptionError for an unknown name or option, a value out of range or of another type, or layers that do not fit
 */
export function createRule(spec: RuleSpec = defaultRule, layout?: Layout): UpdateRule {
  checkOptions('rule', ruleType, spec)
  if (isLayered(spec)) return layerRule(entriesOf(spec), createRule, layout)
  if (isCustomRule(spec)) return customRule(spec)
  const { create, around, eightBitState } = definitionOf(spec)
  if (eightBitState === undefined) return create(spec)
  const { bits, ...options } = spec as BitsOption & { readonly name: RuleName; readonly radius?: number }
  const rule = create(options)
  const isPacked = isCompact(rule.name, { bits, radius: options.radius })
  const core = isPacked ? compact(rule, eightBitState === 'elementwise') : rule
  return around?.(core, options, layout) ?? core
}

/** The rule of a layer. @throws OptionError for a layer without a rule */
export function ruleOfLayer(spec: RuleSpec, block: BlockLayout): SingleRuleSpec {
  return isLayered(spec) ? firstFor(spec.rules, block).rule : spec
}

/** Whether layers may have rules of their own. */
export function isLayered(spec: RuleSpec): spec is LayerRulesSpec {
  return spec.name === 'layers'
}

/** All rules of a spec. */
function rulesOf(spec: RuleSpec): readonly SingleRuleSpec[] {
  return isLayered(spec) ? entriesOf(spec).map(({ rule }) => rule) : [spec]
}

/** Programs in JavaScript may give anything. */
function entriesOf({ rules: given, ...rest }: LayerRulesSpec): LayerRulesSpec['rules'] {
  const isEntry = ({ layers, rule }: Partial<LayerRulesSpec['rules'][number]>) =>
    typeof layers === 'string' && typeof rule?.name === 'string' && !isLayered(rule)
  if (Object.keys(rest).length === 1 && Array.isArray(given) && given.length > 0 && given.every(isEntry)) return given
  throw new OptionError(`rule layers: give rules: [{ layers: 'embedding', rule: { name: 'adagrad' } }, …]`)
}

/** Whether the rule, with these options, steps each block independently. Custom rules may depend on all blocks. */
export function isBlockwise(spec: RuleSpec): boolean {
  return rulesOf(spec).every(rule => !isCustomRule(rule) && definitionOf(rule).isBlockwise(rule))
}

/** Whether new parameters follow from the rule's state alone, so that a step cannot start at other parameters. */
export function isDual(spec: RuleSpec): boolean {
  return rulesOf(spec).some(rule => !isCustomRule(rule) && definitionOf(rule).isDual === true)
}

/** Whether a program provides the rule. */
function isCustomRule(spec: SingleRuleSpec): spec is CustomRuleSpec {
  return isCustomName(spec.name)
}

function definitionOf({ name }: { readonly name: RuleName }): RuleDefinition<object> {
  if (Object.hasOwn(rules, name)) return rules[name]
  throw new OptionError(`unknown rule '${name}'; expected one of ${ruleNames.join(', ')}`)
}

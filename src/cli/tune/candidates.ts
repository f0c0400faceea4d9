/** The candidates of `admb tune`: combinations of update rule, average and batch for a linear model. */

import { Random } from '../../data/index.js'
import {
  type AveragingSpec,
  averages,
  averagingFor,
  defaultRule,
  type ModelName,
  type RuleSpec,
  ruleFor,
  rules
} from '../../learning/index.js'

/** What is tuned. */
export interface Candidate {
  readonly rule: RuleSpec
  readonly averaging: AveragingSpec
  readonly batch: number
}

/** Options that are not tuned: a rule or average of that name, with these options. */
export interface Given {
  readonly rule?: RuleSpec
  readonly averaging?: AveragingSpec
  readonly batch?: number
}

/** Values of an option: multiples of its default, or the default (undefined) and others. */
type Axis = { readonly times: readonly number[] } | { readonly values: readonly (number | undefined)[] }

const aroundDefault: Axis = { times: [0.1, 0.3, 1, 3, 10] }
const smoothness: Axis = { times: [1 / 16, 1 / 4, 1, 4, 16] }

/** The grid of each rule. LAMB and LARS are for networks. */
const ruleAxes: Readonly<Record<string, Readonly<Record<string, Axis>>>> = {
  adagrad: {
    step: { times: [0.1, 0.3, 1, 3, 10, 30] },
    growth: { values: [undefined, 0] },
    forget: { values: [undefined, 0.0001, 0.001] }
  },
  momentum: { step: aroundDefault, momentum: { values: [undefined, 0] } },
  'dual-averaging': { L: smoothness },
  'mirror-descent': { L: smoothness },
  adam: { step: { times: [0.3, 1, 3, 10, 30] } }
}

const averageAxes: Readonly<Record<string, Readonly<Record<string, Axis>>>> = {
  tail: { decay: { values: [15, 127] } },
  uniform: {},
  none: {}
}

const batches: readonly number[] = [1, 16]

/** All candidates; the first has the default options wherever none is given. */
export function allCandidates(model: ModelName, given: Given): readonly Candidate[] {
  const ruleNames = given.rule === undefined ? Object.keys(ruleAxes) : [given.rule.name]
  const found = ruleNames.flatMap(name =>
    expanded({ name, ...given.rule }, ruleAxes[name] ?? {}, defaultsOf(rules, ruleFor(model, { name } as RuleSpec)))
  ) as RuleSpec[]
  const averageNames = given.averaging === undefined ? Object.keys(averageAxes) : [given.averaging.name]
  const averagings = averageNames.flatMap(name =>
    expanded(
      { name, ...given.averaging },
      averageAxes[name] ?? {},
      defaultsOf(averages, averagingFor(model, { name } as AveragingSpec))
    )
  ) as AveragingSpec[]
  const sizes = given.batch === undefined ? batches : [given.batch]
  const first: Candidate = {
    rule: given.rule ?? defaultRule,
    averaging: given.averaging ?? { name: 'tail' },
    batch: sizes[0]
  }
  const grid = found.flatMap(rule => averagings.flatMap(averaging => sizes.map(batch => ({ rule, averaging, batch }))))
  const text = JSON.stringify(first)
  return [first, ...grid.filter(candidate => JSON.stringify(candidate) !== text)]
}

/** Weights that an update may step for each input of its batch. */
const WEIGHTS_PER_INPUT = 500

/**
 * The candidates that are fast enough for a model of this size: AdaGrad with single inputs steps only the weights of an input,
 * everything else all weights. The first candidate is always kept. If no other one qualifies, all are kept.
 */
export function affordable(candidates: readonly Candidate[], weights: number): readonly Candidate[] {
  const isFast = ({ rule, batch }: Candidate) =>
    weights / batch <= WEIGHTS_PER_INPUT || (rule.name === 'adagrad' && batch === 1)
  const found = candidates.filter((candidate, index) => index === 0 || isFast(candidate))
  return found.length === 1 ? candidates : found
}

/** The first candidate and a random sample of the others, in their order. @param count at least 1 */
export function sampled(candidates: readonly Candidate[], count: number, seed: number): readonly Candidate[] {
  const random = new Random(seed)
  const chosen = candidates.map((_, index) => index)
  while (chosen.length > count) chosen.splice(1 + random.below(chosen.length - 1), 1)
  return chosen.map(index => candidates[index])
}

/** A rule or average as an option's value: `adagrad,step=0.6`. */
export function specWord({ name, ...options }: RuleSpec | AveragingSpec): string {
  return [name, ...Object.entries(options).map(([key, value]) => `${key}=${value}`)].join(',')
}

/** Combinations of the options that are not given. Those equal to the default are left out. */
function expanded(
  given: { readonly name: string } & Readonly<Record<string, unknown>>,
  axes: Readonly<Record<string, Axis>>,
  defaults: Readonly<Record<string, unknown>>
): object[] {
  let combined: object[] = [given]
  for (const [key, axis] of Object.entries(axes)) {
    if (given[key] !== undefined) continue
    const fallback = defaults[key]
    const values =
      'values' in axis ? axis.values : axis.times.map(factor => Number(((fallback as number) * factor).toPrecision(3)))
    const isDefault = (value: number | undefined) => value === undefined || value === fallback
    combined = combined.flatMap(options =>
      values.map(value => (isDefault(value) ? options : { ...options, [key]: value }))
    )
  }
  return combined
}

/** Default values of a rule or average for the model. */
function defaultsOf(
  registry: Readonly<Record<string, { readonly options: object }>>,
  { name, ...special }: RuleSpec | AveragingSpec
): Readonly<Record<string, unknown>> {
  const options = Object.hasOwn(registry, name) ? registry[name].options : {}
  const general = Object.entries(options).map(([key, option]) => [key, (option as { default: unknown }).default])
  return { ...Object.fromEntries(general), ...special }
}

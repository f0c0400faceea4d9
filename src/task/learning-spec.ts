/**
 * What is learned, and how: everything that peers must have in common before they may add each other's gradients. One
 * description serves the handshake between peers, the state directory, and the commands that read one.
 */
import type { Recipe } from '../admb/index.js'
import type { Execution } from '../l2l/index.js'
import {
  type AveragingSpec,
  type CustomName,
  createAveraging,
  createCustomLearner,
  createLearner,
  createRule,
  digest,
  isCustomName,
  type Learner,
  type ModelName,
  type RuleSpec
} from '../learner/index.js'
import { type NetworkSpec, networkName, networkText } from '../nn/spec/network-spec.js'
import type { ParserOptions } from '../streams/index.js'

/** Version of the frames and overlay messages; peers of different versions refuse each other. */
export const PROTOCOL_VERSION = 1

/** Plain data: it crosses to the learner thread and is stored as JSON. */
export type LearningSpec = LinearSpec | CustomLossSpec | NetworkLearningSpec

export interface LinearSpec extends CommonSpec {
  readonly model: ModelName
  readonly network?: undefined
}

/** A linear model under a plug-in's loss. */
export interface CustomLossSpec extends CommonSpec {
  readonly model: CustomName
  /** As the loss says. */
  readonly target: 'class' | 'number'
  readonly network?: undefined
}

export interface NetworkLearningSpec extends CommonSpec {
  readonly model: 'network'
  readonly network: NetworkSpec
}

interface CommonSpec {
  /** Number of features, the constant one included. */
  readonly dimension: number
  readonly classes?: number
  readonly l2?: number
  readonly rule: RuleSpec
  readonly averaging: AveragingSpec
  /** b: gradients an update. */
  readonly batch: number
  /** How inputs become features: they mean the same to every peer only if these agree. */
  readonly features: FeatureSpec
  /** What plug-ins the spec needs, as `loadPlugins` names them; undefined for none. */
  readonly plugins?: string
}

export interface FeatureSpec {
  readonly constant: boolean
  readonly hashBits?: number
  /** CSV: names of the numeric columns by feature number. */
  readonly columns?: readonly string[]
  readonly scale: 'none' | 'standard'
  readonly classNames?: readonly string[]
}

/** The parts that the spec describes. */
export interface LearningParts {
  readonly learner: Learner
  readonly recipe: Recipe
}

/**
 * @param execution how a network is to be executed; without it, one can be looked at but not computed with
 * @throws OptionError if the spec makes no sense; ModelError, DeviceError for a network
 */
export async function learningParts(spec: LearningSpec, execution?: Execution): Promise<LearningParts> {
  if (spec.network === undefined) return linearParts(spec)
  // Loaded only where it is needed: it brings TensorFlow.js along.
  const { networkLearner } = await import('../l2l/index.js')
  return { learner: await networkLearner(spec.network, spec.batch, execution), recipe: recipeOf(spec) }
}

/** The same for a linear model, at once. */
export function linearParts(spec: LinearSpec | CustomLossSpec): LearningParts {
  const learner = isCustomLoss(spec) ? createCustomLearner(spec) : createLearner(spec)
  return { learner, recipe: recipeOf(spec) }
}

function isCustomLoss(spec: LearningSpec): spec is CustomLossSpec {
  return isCustomName(spec.model)
}

function recipeOf({ rule, averaging }: LearningSpec): Recipe {
  return { rule: createRule(rule), averaging: createAveraging(averaging), digest }
}

/** Fields that both ends of a session compare, named like the options that set them, in the order of their weight. */
export function learningSpecFields(spec: LearningSpec): [field: string, value: string][] {
  const recipe = recipeOf(spec)
  const { features } = spec
  return [
    ['model', spec.network ? networkName(spec.network) : spec.model],
    ['dimension', String(spec.dimension)],
    ['classes', String(spec.classes ?? '')],
    ['class-names', (features.classNames ?? []).join(',')],
    ['columns', (features.columns ?? []).join(',')],
    ['hash-bits', String(features.hashBits ?? '')],
    ['constant', String(features.constant)],
    ['scale', features.scale],
    ['batch', String(spec.batch)],
    ['rule', recipe.rule.description],
    ['average', recipe.averaging.description],
    ['l2', String(spec.l2 ?? 0)],
    ...(spec.plugins === undefined ? [] : [['plugins', spec.plugins] as [string, string]])
  ]
}

/** How more inputs for the model must be parsed, from whatever text (`columns` where there are any): labels and features then mean what they meant to it. */
export function parserOptions(spec: LearningSpec): ParserOptions {
  const { model, network, dimension, classes, features } = spec
  const { constant, hashBits, columns, classNames } = features
  const isNumber = isCustomLoss(spec)
    ? spec.target === 'number'
    : model === 'linear' || network?.target.kind === 'number'
  return {
    target: isNumber ? 'number' : 'class',
    classes: isNumber || classNames ? undefined : (classes ?? 2),
    classNames,
    constant,
    hashBits,
    columns,
    dimension: hashBits === undefined ? dimension - (constant ? 1 : 0) : undefined
  }
}

/** The spec as the text that a state directory keeps: equal for equal specs. */
export function specText(spec: LearningSpec): string {
  const { model, network, dimension, classes, l2, rule, averaging, batch, features, plugins } = spec
  const target = isCustomLoss(spec) ? spec.target : undefined
  const { constant, hashBits, columns, scale, classNames } = features
  const sorted = (object: object) => Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)))
  return JSON.stringify({
    model,
    target,
    network: network && JSON.parse(networkText(network)),
    dimension,
    classes,
    l2: l2 || undefined,
    rule: sorted(rule),
    averaging: sorted(averaging),
    batch,
    features: { constant, hashBits, columns, scale, classNames },
    plugins
  })
}

/** The inverse of `specText`. */
export function parseSpec(text: string): LearningSpec {
  return JSON.parse(text) as LearningSpec
}

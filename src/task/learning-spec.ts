/**
 * The learning spec: everything that peers must agree on before they may add up their gradients. The handshake between peers,
 * the state directory and the commands use the same spec.
 */
import type { MasterAlgorithm } from '../admb/index.js'
import type { ColumnSchema, LabelSchema, ParserOptions, Schema } from '../data/parsing.js'
import {
  type AveragingSpec,
  type BlockLayout,
  type CustomName,
  isClassifier,
  isCustomName,
  type ModelName,
  OptionError,
  type RuleSpec,
  type TargetScale
} from '../learning/index.js'
import type { NetworkSpec } from '../nn/spec/network-spec.js'
import { weightsByClass } from './option-values.js'

/** Version of frames, of overlay messages and of the grids of integer sums; peers of different versions refuse each other. */
export const PROTOCOL_VERSION = 1

/** Plain data, which is sent to the learner thread and stored as JSON. */
export type LearningSpec = LinearSpec | CustomLossSpec | NetworkLearningSpec | ProgramSpec

/** A linear model with a built-in loss. */
export interface LinearSpec extends CommonSpec {
  readonly model: ModelName
  /** Regression: by which the target is standardised. @default not standardised */
  readonly targetScale?: TargetScale
  readonly network?: undefined
}

/** A linear model with a plug-in's loss. */
export interface CustomLossSpec extends CommonSpec {
  readonly model: CustomName
  /** Determined by the loss. */
  readonly target: 'class' | 'number'
  readonly network?: undefined
}

/** A neural network. */
export interface NetworkLearningSpec extends CommonSpec {
  readonly model: 'network'
  readonly network: NetworkSpec
}

/** A model that only a program in another process can compute: the peer knows its parameters. */
export interface ProgramSpec extends CommonSpec {
  readonly model: 'external'
  readonly program: ProgramModel
  readonly network?: undefined
}

/** What peers know of the model of a program. */
export interface ProgramModel {
  readonly blocks: readonly BlockLayout[]
  /** Digest of the parameters that the model starts from: 32 hexadecimal digits. */
  readonly start: string
  /** Text that the program gives. Programs with other texts must not learn together. */
  readonly fingerprint: string
}

interface CommonSpec {
  /** Number of features, the constant feature included. */
  readonly dimension: number
  readonly classes?: number
  /** Factor of the gradients of each class's inputs. @default 1 for all classes */
  readonly classWeights?: readonly number[]
  readonly l2?: number
  readonly rule: RuleSpec
  readonly averaging: AveragingSpec
  /** b: gradients per update; the least b if the peers choose it. */
  readonly batch: number
  /** Linear models: the largest b that the peers choose. @default b is fixed */
  readonly batchMax?: number
  /** Gradient sums between peers are integers on a grid. @default they are float32 numbers */
  readonly sums?: 'lattice'
  /** Decides which peers make updates. @default each peer that has b gradients, as in ADMB */
  readonly algorithm?: MasterAlgorithm
  /** H: the number of steps that a peer makes while it fills a batch alone. @default no steps between updates */
  readonly localSteps?: number
  /** μ of the updates that average the copies. @default no momentum */
  readonly localMomentum?: number
  /** Bytes of a peer's own sum for each weight and update. @default sums contain all elements that do not round to 0 */
  readonly sumBytes?: number
  /** Whether the gradient sum of each peer is bounded. @default it is not */
  readonly influence?: 'bounded'
  /** How inputs become features. */
  readonly features: FeatureSpec
  /** Digests of the plug-ins that the spec needs, as `loadPlugins` returns them. */
  readonly plugins?: string
}

/** How inputs become features: constant, hashing, columns, scaling, class names. */
export interface FeatureSpec {
  readonly constant: boolean
  readonly hashBits?: number
  /** Features of rows without columns that are multiplied. @default none */
  readonly interactions?: ParserOptions['interactions']
  /** The columns of a table, in the order of their features. */
  readonly columns?: readonly ColumnSchema[]
  /** The column or key of the label. Peers need not agree on it. @default 'label' */
  readonly label?: string
  readonly scale: 'none' | 'standard'
  readonly classNames?: readonly string[]
}

/** Whether the model has weights for features. */
export function isLinear(spec: LearningSpec): spec is LinearSpec | CustomLossSpec {
  return spec.network === undefined && spec.model !== 'external'
}

/** Whether a plug-in has the loss. */
export function isCustomLoss(spec: LearningSpec): spec is CustomLossSpec {
  return isCustomName(spec.model)
}

/** Names of the first classes of a model that has room for more; undefined for others. */
export function growingNames({
  model,
  classes,
  features
}: Omit<LearningSpec, 'dimension'>): readonly string[] | undefined {
  const { classNames } = features
  return model === 'softmax' && classNames && (classes ?? 0) > classNames.length ? classNames : undefined
}

/** @throws OptionError for a model that only a program can compute, whose inputs and weights have no meaning here */
export function refuseProgram({ model }: LearningSpec): void {
  if (model === 'external')
    throw new OptionError(
      'a program has this model and its data: predict and learn there (--learner external), or export safetensors'
    )
}

/** Classes that are added later have weight 1. */
export function weightsOf({ classWeights, features }: LearningSpec): Pick<LabelSchema, 'weights'> {
  const { classNames } = features
  return weightsByClass(classWeights?.slice(0, classNames?.length), classNames)
}

/** Whether the model predicts a number instead of a class. */
export function predictsNumbers(spec: LearningSpec): boolean {
  if (isCustomLoss(spec)) return spec.target === 'number'
  if (spec.model === 'external') return false
  return spec.network ? spec.network.target.kind === 'number' : !isClassifier(spec.model)
}

/** Parser options for further inputs of the model, so that labels and features keep their numbers. */
export function parserOptions(spec: LearningSpec): ParserOptions {
  const { dimension, classes, features } = spec
  const { constant, hashBits, interactions, columns: schema, label, classNames } = features
  const isNumber = predictsNumbers(spec)
  return {
    target: isNumber ? 'number' : 'class',
    classes: isNumber || classNames ? undefined : (classes ?? 2),
    classNames,
    constant,
    hashBits,
    interactions,
    schema,
    label,
    dimension: hashBits === undefined ? dimension - (constant ? 1 : 0) : undefined
  }
}

/**
 * What the inputs of the model mean, for people and for the option `schema` of further peers.
 * @param added classes that were added to those of the spec
 */
export function schemaOf(spec: LearningSpec, added?: readonly string[]): Schema {
  if (spec.network?.target.kind === 'next-token') return {}
  if (spec.model === 'external') return { external: true }
  const { columns, label: name, classNames: names, hashBits } = spec.features
  const isNumber = predictsNumbers(spec)
  const classes = spec.classes ?? names?.length ?? 2
  return {
    label: {
      ...(name !== undefined && { name }),
      ...(isNumber
        ? { kind: 'number', ...targetScaleOf(spec) }
        : { kind: 'class', names, classes, ...(added && { added }), ...weightsOf(spec) })
    },
    ...(columns && { columns }),
    ...(hashBits !== undefined && { hashBits })
  }
}

export function targetScaleOf(spec: LearningSpec): TargetScale | undefined {
  if (spec.network?.target.kind === 'number') return spec.network.target.scale
  return 'targetScale' in spec ? spec.targetScale : undefined
}

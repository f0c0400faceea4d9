/** What is to be learned, as a program says it, made into the spec that peers compare and the stream that they read. */

import {
  type AveragingSpec,
  type CustomName,
  customLoss,
  defaultAveraging,
  defaultNetworkRule,
  isCustomName,
  type ModelName,
  modelNames,
  OptionError,
  type RuleSpec,
  ruleFor
} from '../learner/index.js'
import { parseModel } from '../nn/spec/model-spec.js'
import type { NetworkSpec } from '../nn/spec/network-spec.js'
import { sampleFor } from '../nn/spec/sample.js'
import { type FeatureSpec, type LearningSpec, loadPlugins } from '../peer/index.js'
import { openStream, type StreamOptions } from '../streams/index.js'

/** A network, as in a model file: `{ model: 'mlp', hidden: [64] }`, or `{ layers: [{ kind: 'dense', units: 8 }, …] }`. */
export type NetworkModel =
  | { readonly model: string; readonly [option: string]: unknown }
  | { readonly layers: readonly object[] }

export interface TaskOptions {
  /** Default: `logistic`, or `softmax` for more than two classes. `custom:NAME` for a plug-in's loss. */
  readonly model?: ModelName | CustomName | NetworkModel
  /** Numbers an input has. Default: as the data tells; must be known for peers and networks, unless features are hashed. */
  readonly features?: number
  /** Features are names, hashed into 2^hashBits numbers. Default: they are not. */
  readonly hashBits?: number
  /** Default: as many as there are names, or as the data tells, or 2. */
  readonly classes?: number
  /** Labels in the order of their class numbers. Default: labels are class numbers. */
  readonly classNames?: readonly string[]
  /** Networks: what is predicted. Default: a class. */
  readonly target?: 'class' | 'number'
  /** Adds a feature that is always 1. Default: for models that are no networks. */
  readonly constant?: boolean
  /** b: gradients an update. Default 128 for peers, 1 for `train`. */
  readonly batch?: number
  /** Default: AdaGrad, or Adam for networks. `custom:NAME` for a plug-in's. */
  readonly rule?: RuleSpec
  /** Which average of the parameters serves predictions. Default: that of the last updates. */
  readonly averaging?: AveragingSpec
  /** λ of the penalty λ/2·‖w‖². Default 0. */
  readonly l2?: number
  /** Numeric columns are put on one scale by what came before. Default `none`. */
  readonly scale?: 'none' | 'standard'
  /** A file, a built-in stream (`digits`), or either with options. Default: none. */
  readonly data?: string | StreamOptions
  /** Modules with own losses, rules, layers and readers: paths or `file:` URLs. */
  readonly plugins?: readonly (string | URL)[]
}

export interface Task {
  readonly spec: LearningSpec
  readonly stream: StreamOptions | undefined
  readonly plugins: readonly string[]
}

/**
 * @param batch where none is asked for
 * @throws OptionError, ModelError, PluginError; errors of the stream
 */
export async function taskOf(options: TaskOptions, batch: number): Promise<Task> {
  const modules = options.plugins?.map(String) ?? []
  const plugins = await loadPlugins(modules)
  const stream = streamOf(options)
  const found = stream && (await probe(stream))
  const isNetwork = typeof options.model === 'object'
  const { constant = !isNetwork, hashBits = found?.hashBits, classNames, scale = 'none' } = options
  const classes = options.classes ?? classNames?.length ?? found?.classes
  const given = hashBits === undefined ? options.features : 2 ** hashBits
  const dimension = found?.dimension ?? (given === undefined ? undefined : given + Number(constant))
  if (dimension === undefined) {
    throw new OptionError('the number of features must be known: give features, or hashBits to hash their names')
  }
  const features: FeatureSpec = { constant, hashBits, columns: found?.columns, scale, classNames }
  const common = {
    dimension,
    averaging: options.averaging ?? defaultAveraging,
    batch: checkedBatch(options.batch ?? batch),
    features,
    ...(plugins !== undefined && { plugins })
  }
  return { spec: specOf(options, classes, common), stream, plugins: modules }
}

type Common = Pick<LearningSpec, 'dimension' | 'averaging' | 'batch' | 'features' | 'plugins'>

function specOf({ model, rule, l2, target }: TaskOptions, classes: number | undefined, common: Common): LearningSpec {
  if (typeof model === 'object') {
    const network = networkOf(model, common.dimension, target ?? 'class', classes ?? 2)
    return { model: 'network', network, classes, rule: rule ?? defaultNetworkRule, ...common }
  }
  const name = model ?? ((classes ?? 2) > 2 ? 'softmax' : 'logistic')
  if (isCustomName(name)) {
    const { classifies } = customLoss(name)
    return { model: name, target: classifies ? 'class' : 'number', l2, rule: ruleFor('linear', rule), ...common }
  }
  if (!modelNames.includes(name)) {
    throw new OptionError(
      `there is no model ${name}: give ${modelNames.join(', ')}, custom:NAME, or a network as an object`
    )
  }
  return {
    model: name,
    classes: name === 'softmax' ? (classes ?? 2) : undefined,
    l2,
    rule: ruleFor(name, rule),
    ...common
  }
}

function networkOf(model: NetworkModel, dimension: number, target: 'class' | 'number', classes: number): NetworkSpec {
  const layers = parseModel(model, 'model')
  return {
    layers,
    sample: sampleFor(layers, dimension),
    target: target === 'number' ? { kind: target } : { kind: target, classes }
  }
}

function streamOf({ data, ...options }: TaskOptions): StreamOptions | undefined {
  if (data === undefined) return undefined
  const isNetwork = typeof options.model === 'object'
  const own = typeof options.model === 'string' && isCustomName(options.model) && !customLoss(options.model).classifies
  const isNumber = options.model === 'linear' || own || (isNetwork && options.target === 'number')
  const { constant = !isNetwork, hashBits, classes, classNames, scale, features: dimension } = options
  const wanted = { constant, dimension, hashBits, classNames, scale, classes: isNumber ? undefined : classes }
  const target = isNumber ? 'number' : undefined
  return withoutUndefined({ target, ...wanted, ...(typeof data === 'string' ? { data } : data) })
}

/** What the data tells before it is read. */
async function probe(stream: StreamOptions) {
  const opened = await openStream(stream)
  await opened[Symbol.asyncIterator]().return?.()
  const { dimension, classes, hashBits, columns } = opened
  return { dimension, classes, hashBits, columns }
}

function checkedBatch(batch: number): number {
  if (Number.isSafeInteger(batch) && batch >= 1) return batch
  throw new OptionError(`batch must be a whole number of gradients, at least 1, not ${batch}`)
}

/** Streams take what is there for a wish. */
function withoutUndefined(options: StreamOptions): StreamOptions {
  return Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined)
  ) as unknown as StreamOptions
}

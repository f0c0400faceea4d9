/** From flags to what is read and what is learned. */

import { defaultAveraging, defaultNetworkRule, type ModelName, ruleFor } from '../../learner/index.js'
import type { NetworkSpec } from '../../nn/spec/network-spec.js'
import { type ExampleStream, type InputKind, inputKind, type StreamOptions } from '../../streams/index.js'
import { type LearningSpec, parserOptions } from '../../task/learning-spec.js'
import { UsageError } from '../errors.js'
import { isNetwork, linearModel } from './networks.js'
import type { DataFlags, LearningFlags } from './options.js'

/** Rows of `synthetic`, which would never end. */
const SYNTHETIC_ROWS = 100_000

/** The stream that the flags describe. Target and number of classes follow from the model. */
export function streamOptions(flags: DataFlags & LearningFlags): StreamOptions {
  const { data, kind } = inputOf(flags)
  const { label, labels, classNames, columns, ignore, categorical, dimension, hashBits } = flags
  const isNumber = flags.model === 'linear' || (isNetwork(flags.model) && flags.target === 'number')
  return given({
    ...reading(flags, data, kind),
    label,
    labels,
    classes: flags.classes ?? (isText(kind) && !isNumber && learnsTwoClasses(flags) ? 2 : undefined),
    classNames,
    columns,
    ignore,
    categorical,
    dimension,
    hashBits,
    constant: hasConstant(flags),
    target: isNumber ? 'number' : undefined,
    scale: flags.scale === 'none' ? undefined : flags.scale
  })
}

/** Stream options for data that an existing model reads. @throws UsageError if the data cannot fit it */
export function streamFor(spec: LearningSpec, flags: Partial<DataFlags>): StreamOptions {
  const { data, kind } = inputOf(flags)
  const { label, labels, ignore, categorical } = flags
  const { target, constant, dimension, columns, ...text } = parserOptions(spec)
  const common = { ...reading(flags, data, kind), label, labels, ignore, categorical, target, constant }
  switch (kind) {
    case 'digits':
      return given({ ...common, target: undefined })
    case 'idx':
      return given(common)
    case 'synthetic':
      return given({ ...common, dimension })
    case 'vw':
      if (text.hashBits === undefined) {
        throw new UsageError('the model was trained without hashing, and vw inputs are hashed: give another format')
      }
      return given({ ...common, ...text })
    case 'csv':
    case 'jsonl':
      return given({ ...common, ...text, dimension, columns, scale: spec.features.scale })
    case 'libsvm':
    case undefined:
      return given({ ...common, ...text, dimension, scale: spec.features.scale })
    default:
      return kind satisfies never
  }
}

/** @throws UsageError if what the opened stream tells of itself does not fit the model */
export function checkFits(spec: LearningSpec, { dimension }: ExampleStream): void {
  if (dimension === undefined || dimension === spec.dimension) return
  throw new UsageError(
    `the data has ${dimension} features, the model ${spec.dimension} (the constant one included): give data like that it was trained on`
  )
}

/** Whether labels may be left out in inputs of that kind. */
export function isText(kind: InputKind | undefined): boolean {
  return kind !== 'digits' && kind !== 'synthetic' && kind !== 'idx'
}

/** The model for a stream, where none was asked for. */
export function modelFor(asked: string | undefined, { classes }: Pick<ExampleStream, 'classes'>): ModelName {
  return linearModel(asked) ?? ((classes ?? 2) > 2 ? 'softmax' : 'logistic')
}

/** What the data, or the flags, tell of a model. */
export interface Found {
  readonly model: ModelName | NetworkSpec
  readonly dimension: number
  readonly classes: number | undefined
  readonly hashBits: number | undefined
  readonly columns: readonly string[] | undefined
  readonly batch: number
}

/** What is learned, for a peer or a state directory: everything must be known by now. */
export function learningSpec(flags: DataFlags & LearningFlags, found: Found): LearningSpec {
  const { model, dimension, classes, batch, hashBits, columns } = found
  const { l2, rule, average: averaging = defaultAveraging, scale, classNames } = flags
  const features = { constant: hasConstant(flags), hashBits, columns, scale, classNames }
  if (typeof model !== 'string') {
    if (l2) throw new UsageError('--l2 is for linear models: for networks use --rule lamb,decay=…')
    return {
      model: 'network',
      network: model,
      dimension,
      classes,
      rule: rule ?? defaultNetworkRule,
      averaging,
      batch,
      features
    }
  }
  const common = { dimension, l2, rule: ruleFor(model, rule), averaging, batch, features }
  return { model, classes: model === 'softmax' ? classes : undefined, ...common }
}

/** Networks have biases of their own. */
export function hasConstant({ constant, model }: DataFlags & LearningFlags): boolean {
  return constant && !isNetwork(model)
}

function inputOf({ data, format }: Partial<DataFlags>): { data: string; kind: InputKind | undefined } {
  if (data === undefined) {
    throw new UsageError('no data: give --data FILE, --data - for standard input, or --data digits to try it out')
  }
  return { data, kind: inputKind(data, format) }
}

function reading(flags: Partial<DataFlags>, data: string, kind: InputKind | undefined) {
  const { format, shard, passes, shuffleWindow, seed, noise, strict } = flags
  const maxRows = flags.limit ?? (kind === 'synthetic' ? SYNTHETIC_ROWS : undefined)
  return { data, format, shard, passes, shuffleWindow, seed, maxRows, noise, strict }
}

function learnsTwoClasses({ classNames, model }: DataFlags & LearningFlags): boolean {
  return classNames === undefined && model !== 'softmax' && model !== 'linear'
}

/** Without what was left out, which streams take for a wish. */
function given(options: StreamOptions): StreamOptions {
  return Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined)
  ) as unknown as StreamOptions
}

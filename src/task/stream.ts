/** The stream of a task, and the stream of further inputs for a model that exists. */

import type { Format, StreamOptions, TokenRows } from '../data/index.js'
import {
  type ExampleStream,
  type InputKind,
  inputKind,
  inputOptionsOf,
  isCustomFormat,
  isText,
  type LabelSchema,
  type ParserOptions,
  type Schema
} from '../data/parsing.js'
import { OptionError } from '../learning/index.js'
import { type LearningSpec, parserOptions, refuseProgram } from './learning-spec.js'
import { hasConstant, predictsNumber, type TaskModel, type TaskOptions } from './options.js'

/** `hashBits` of tables for networks: fewer than for linear models, because each feature has a vector of weights. */
const NETWORK_HASH_BITS = 12
/** Rows of `synthetic` if no limit is given. The stream is endless. */
const SYNTHETIC_ROWS = 100_000

/** The stream that the options describe; undefined without `data`. */
export function taskStream(
  options: TaskOptions,
  model: TaskModel | undefined,
  tokens: TokenRows | undefined,
  { label: described, columns, ...schema }: Schema
): StreamOptions | undefined {
  if (options.data === undefined) return undefined
  const given = typeof options.data === 'string' ? { data: options.data } : options.data
  const kind = kindOf(given)
  const isText = isTextKind(kind) && tokens === undefined
  const label = isText ? described : undefined
  const { features, scale, hashBits = schema.hashBits } = options
  const classNames = options.classNames ?? label?.names
  const hints = labelHints({ ...options, classNames, target: options.target ?? label?.kind }, model)
  const isNumber = hints.target === 'number'
  const classes = hints.classes ?? label?.classes
  return withoutUndefined<StreamOptions>({
    dimension: features,
    hashBits,
    classNames: isNumber ? undefined : classNames,
    constant: hasConstant(options, model),
    target: isNumber || isText ? hints.target : undefined,
    classes: isNumber ? undefined : isText ? classes : options.classes,
    label: label?.name,
    schema: isText ? columns : undefined,
    scale: scale ?? (isText ? 'auto' : undefined),
    inferLabel: isText && label === undefined ? true : undefined,
    classesMax: isText ? (options.classesMax ?? roomOf(described)) : undefined,
    tableHashBits: isText && model?.kind === 'network' ? NETWORK_HASH_BITS : undefined,
    countClasses: isText && options.classWeights === 'balanced' ? true : undefined,
    maxRows: kind === 'synthetic' ? SYNTHETIC_ROWS : undefined,
    ...withoutUndefined(given),
    tokens
  })
}

/** Number of classes of a label that has classes without names. */
function roomOf({ names, classes = 0 }: Partial<LabelSchema> = {}): number | undefined {
  return names !== undefined && classes > names.length ? classes : undefined
}

/** What the options and the model determine about the label. */
export function labelHints(
  options: TaskOptions,
  model: TaskModel | undefined
): { readonly target: 'class' | 'number' | undefined; readonly classes: number | undefined } {
  if (predictsNumber(options, model)) return { target: 'number', classes: undefined }
  const classes = options.classNames?.length ?? options.classes ?? (isBinary(model) ? 2 : undefined)
  const isInferred = (model === undefined || model.kind === 'network') && classes === undefined
  return { target: isInferred && options.target !== 'class' ? undefined : 'class', classes }
}

function isBinary(model: TaskModel | undefined): boolean {
  return model !== undefined && model.kind !== 'network' && model.name !== 'softmax'
}

/** What of a command's stream options applies to inputs for a model that exists: how they are read, not what they mean. */
export type ReadOptions = Omit<StreamOptions, 'data'> & { readonly data?: string }

/** Stream options for inputs of an existing model. @throws OptionError if the data cannot fit it */
export function streamFor(spec: LearningSpec, options: ReadOptions): StreamOptions {
  const { data, label } = options
  if (data === undefined) throw noData()
  refuseProgram(spec)
  const kind = kindOf({ data, format: options.format })
  const known = optionsOf(spec, kind)
  const scale = inputOptionsOf(kind).includes('scale') ? spec.features.scale : undefined
  const maxRows = options.maxRows ?? (kind === 'synthetic' ? SYNTHETIC_ROWS : undefined)
  return withoutUndefined({
    ...options,
    classNames: undefined,
    ...known,
    ...(kind === 'digits' || kind === 'digits:test' ? { target: undefined } : {}),
    label: label ?? known.label,
    data,
    scale,
    maxRows
  })
}

/** The options by which a parser of this kind of input reads inputs for the model. @throws OptionError if it cannot */
export function optionsOf(spec: LearningSpec, kind: Kind): ParserOptions {
  if (kind === 'vw' && spec.features.hashBits === undefined) {
    throw new OptionError(
      'the model does not hash its features, and the features of VW have names: give another format, or train with --hash-bits'
    )
  }
  const { target, constant, ...options } = parserOptions(spec)
  const taken: readonly string[] = inputOptionsOf(kind)
  checkInteractions(options.interactions, kind)
  const isTable = options.schema !== undefined && taken.includes('schema')
  const fitting = Object.entries(options).filter(
    ([option, value]) => value !== undefined && taken.includes(option) && !(isTable && option === 'dimension')
  )
  // The model may have been trained on rows that lacked some features.
  const ignoreUnknown = options.dimension !== undefined && !isTable
  return { target, constant, ignoreUnknown: ignoreUnknown || undefined, ...Object.fromEntries(fitting) }
}

/** @throws OptionError if the features of this kind of input cannot be multiplied as those of the model are */
function checkInteractions(interactions: ParserOptions['interactions'], kind: Kind): void {
  if (interactions === undefined) return
  const fitting = interactions === 'all' ? ['vw', 'libsvm', 'jsonl'] : ['vw']
  if (kind !== undefined && fitting.includes(kind)) return
  const what = interactions === 'all' ? 'all pairs of features of a row' : 'features of namespaces'
  throw new OptionError(`the model multiplies ${what}: give data as ${fitting.join(', ')}`)
}

/** @throws OptionError if the opened stream does not fit the model */
export function checkFits(spec: LearningSpec, { dimension }: ExampleStream): void {
  if (dimension === undefined || dimension === spec.dimension) return
  throw new OptionError(
    `the data has ${dimension} features, the model ${spec.dimension} (the constant feature included): give data with the features that the model was trained on`
  )
}

/** The error of commands that need data. */
export function noData(): OptionError {
  return new OptionError('no data: give --data FILE, --data - for standard input, or --data digits to try it out')
}

type Kind = InputKind | 'custom' | undefined

/** Whether inputs of that kind may have no labels. */
export function isTextKind(kind: Kind): boolean {
  return kind === undefined || (kind !== 'custom' && isText(kind))
}

function kindOf({ data, format }: Pick<StreamOptions, 'data' | 'format'>): Kind {
  return format !== undefined && isCustomFormat(format) ? 'custom' : inputKind(data, format as Format | undefined)
}

/** Streams distinguish an absent option from an undefined one. */
export function withoutUndefined<Options extends object>(options: Options): Options {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Options
}

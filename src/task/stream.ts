/** The stream of a task, and the stream of further inputs for a model that exists. */
import { OptionError } from '../learner/index.js'
import {
  type ExampleStream,
  type Format,
  type InputKind,
  inputKind,
  isCustomFormat,
  isText,
  type StreamOptions,
  type TokenRows
} from '../streams/index.js'
import { type LearningSpec, parserOptions } from './learning-spec.js'
import { hasConstant, predictsNumber, type TaskModel } from './model.js'
import type { TaskOptions } from './options.js'

/** Rows of `synthetic` if no limit is given. The stream is endless. */
const SYNTHETIC_ROWS = 100_000

/** The stream that the options describe; undefined without `data`. */
export function taskStream(
  options: TaskOptions,
  model: TaskModel | undefined,
  tokens: TokenRows | undefined
): StreamOptions | undefined {
  if (options.data === undefined) return undefined
  const given = typeof options.data === 'string' ? { data: options.data } : options.data
  const kind = kindOf(given)
  const { features, hashBits, classNames, scale } = options
  const isNumber = predictsNumber(options, model)
  const twoClasses = isTextKind(kind) && !isNumber && !isSoftmax(model) && classNames === undefined ? 2 : undefined
  return withoutUndefined<StreamOptions>({
    dimension: features,
    hashBits,
    classNames,
    constant: hasConstant(options, model),
    target: isNumber ? 'number' : undefined,
    classes: isNumber ? undefined : (options.classes ?? twoClasses),
    scale: scale === 'none' ? undefined : scale,
    maxRows: kind === 'synthetic' ? SYNTHETIC_ROWS : undefined,
    ...withoutUndefined(given),
    tokens
  })
}

/** What of a command's stream options applies to inputs for a model that exists: how they are read, not what they mean. */
export type ReadOptions = Omit<StreamOptions, 'data'> & { readonly data?: string }

/** Stream options for inputs of an existing model. @throws OptionError if the data cannot fit it */
export function streamFor(spec: LearningSpec, options: ReadOptions): StreamOptions {
  const { data } = options
  if (data === undefined) throw noData()
  const kind = kindOf({ data, format: options.format })
  const { target, constant, dimension, columns, ...text } = parserOptions(spec)
  const maxRows = options.maxRows ?? (kind === 'synthetic' ? SYNTHETIC_ROWS : undefined)
  const common = { ...options, data, maxRows, target, constant, classNames: undefined }
  switch (kind) {
    case 'digits':
    case 'digits:test':
      return withoutUndefined({ ...common, target: undefined })
    case 'idx':
    case 'custom':
      return withoutUndefined(common)
    case 'synthetic':
      return withoutUndefined({ ...common, dimension })
    case 'vw':
      if (text.hashBits === undefined) {
        throw new OptionError('the model was trained without hashing, and vw inputs are hashed: give another format')
      }
      return withoutUndefined({ ...common, ...text })
    case 'csv':
    case 'jsonl':
      return withoutUndefined({ ...common, ...text, dimension, columns, scale: spec.features.scale })
    case 'libsvm':
    case undefined:
      return withoutUndefined({ ...common, ...text, dimension, scale: spec.features.scale })
    default:
      return kind satisfies never
  }
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

/** Whether inputs of that kind may have no labels. */
export function isTextKind(kind: InputKind | 'custom' | undefined): boolean {
  return kind === undefined || (kind !== 'custom' && isText(kind))
}

function kindOf({ data, format }: Pick<StreamOptions, 'data' | 'format'>): InputKind | 'custom' | undefined {
  return format !== undefined && isCustomFormat(format) ? 'custom' : inputKind(data, format as Format | undefined)
}

function isSoftmax(model: TaskModel | undefined): boolean {
  return model?.kind === 'linear' && model.name === 'softmax'
}

/** Streams tell an option that is absent from one that is undefined. */
function withoutUndefined<Options extends object>(options: Options): Options {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Options
}

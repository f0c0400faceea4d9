/**
 * Options that several commands share, each defined once, and what they mean to the rooms below. Flags keep the names of
 * the architecture page; `--config` files use the same names.
 */
import { type Command, Option } from 'commander'
import {
  type AveragingSpec,
  averagingNames,
  defaultAveraging,
  defaultRule,
  type ModelName,
  modelNames,
  type RuleSpec,
  ruleNames
} from '../learner/index.js'
import type { FeatureSpec, LearningSpec, PredictWith } from '../peer/index.js'
import { type ExampleStream, FORMATS, type Format, type Shard, type StreamOptions } from '../streams/index.js'
import { UsageError } from './errors.js'
import { amount, choice, list, named, shard, whole } from './values.js'

export interface DataFlags {
  readonly data?: string
  readonly format?: Format
  readonly label?: string
  readonly labels?: string
  readonly classes?: number
  readonly classNames?: readonly string[]
  readonly ignore?: string[]
  readonly categorical?: string[]
  readonly dimension?: number
  readonly hashBits?: number
  readonly constant: boolean
  readonly scale: 'none' | 'standard'
  readonly shard?: Shard
  readonly passes?: number
  readonly shuffleWindow?: number
  readonly seed?: number
  readonly limit?: number
  readonly noise?: number
  readonly strict?: boolean
}

export interface LearningFlags {
  readonly model?: ModelName
  readonly rule?: RuleSpec
  readonly average?: AveragingSpec
  readonly batch?: number
  readonly l2?: number
}

/** `--json` and `--config`, which every command has. */
export function withCommon(command: Command): Command {
  return command
    .option('--json', 'print one JSON object as the last line on stdout')
    .option('--config <file>', 'YAML file with options under their long names; flags override it')
}

/** Where inputs come from and how they become features. */
export function withData(command: Command): Command {
  return command
    .option('--data <file>', 'inputs: a file, - for standard input, digits, digits:test or synthetic')
    .option('--format <name>', `${FORMATS.join(', ')} (default: guessed from the file's name)`, choice(FORMATS))
    .option('--label <column>', 'CSV column or JSON key of the label')
    .option('--labels <file>', 'IDX: the labels, where they are not beside the images')
    .option('--class-names <list>', 'label texts in the order of their class numbers', list)
    .option('--ignore <list>', 'CSV columns or JSON keys to leave out', list)
    .option('--categorical <list>', 'CSV columns that hold categories though they look like numbers', list)
    .addOption(
      new Option('--scale <how>', 'numeric columns: running mean and deviation')
        .choices(['none', 'standard'])
        .default('none')
    )
    .option('--shard <I/N>', 'only every N-th input, starting with the I-th', shard)
    .option('--passes <n>', 'read the data so often', whole(1))
    .option('--shuffle-window <rows>', 'shuffle within so many rows', whole(1, 1_000_000))
    .option('--seed <n>', 'seed of shuffling and of built-in streams', whole(0))
    .option('--limit <rows>', 'stop after so many inputs', whole(0))
    .option('--noise <amount>', 'synthetic: share of flipped classes, or deviation of numbers', amount())
    .option('--strict', 'stop at the first malformed input instead of skipping it')
}

/** How inputs become features; stored with a model, so only commands that start one have these. */
export function withFeatures(command: Command): Command {
  return command
    .option('--dimension <n>', 'number of features, where the data does not tell', whole(1))
    .option('--hash-bits <n>', 'hash features into 2^n', whole(1, 30))
    .option('--no-constant', 'leave out the feature that is always 1')
    .option('--classes <n>', 'number of classes, where the data does not tell', whole(2))
}

/** The model and how it learns. */
export function withLearning(command: Command, batch: number): Command {
  return command
    .option(
      '--model <name>',
      `${modelNames.join(', ')} (default: softmax for 3 or more classes, else logistic)`,
      choice(modelNames)
    )
    .option(
      '--rule <name[,key=value]>',
      `${ruleNames.join(', ')} (default: ${defaultRule.name})`,
      named('rule', ruleNames)
    )
    .option(
      '--average <name[,key=value]>',
      `${averagingNames.join(', ')} (default: ${defaultAveraging.name})`,
      named('average', averagingNames)
    )
    .option('--batch <b>', `gradients an update (default: ${batch})`, whole(1))
    .option('--l2 <lambda>', 'penalty λ/2·‖w‖²', amount())
}

export function withPredictWith<T extends string>(command: Command, words: readonly T[]): Command {
  return command.option('--predict-with <which>', `${words.join(', ')} (default: average)`, choice(words))
}

/** The stream that the flags describe. `target` follows from the model. */
export function streamOptions(flags: DataFlags, model: ModelName | undefined): StreamOptions {
  const { data, format, label, labels, classes, classNames, ignore, categorical, dimension, hashBits } = flags
  if (data === undefined) {
    throw new UsageError('no data: give --data FILE, --data - for standard input, or --data digits to try it out')
  }
  const isSynthetic = data === 'synthetic'
  const options = {
    data,
    format,
    label,
    labels,
    classes,
    classNames,
    ignore,
    categorical,
    dimension,
    hashBits,
    constant: flags.constant,
    target: model === 'linear' ? ('number' as const) : undefined,
    scale: flags.scale === 'none' ? undefined : flags.scale,
    shard: flags.shard,
    passes: flags.passes,
    shuffleWindow: flags.shuffleWindow,
    seed: flags.seed,
    maxRows: flags.limit ?? (isSynthetic ? 100_000 : undefined),
    noise: flags.noise,
    strict: flags.strict
  }
  return Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined)
  ) as unknown as StreamOptions
}

/** The model for a stream, where none was asked for. */
export function modelFor(asked: ModelName | undefined, stream: ExampleStream | undefined): ModelName {
  return asked ?? ((stream?.classes ?? 2) > 2 ? 'softmax' : 'logistic')
}

export function featureSpec(flags: DataFlags): FeatureSpec {
  const { constant, hashBits, scale, classNames } = flags
  return { constant, hashBits, scale, classNames }
}

/** What is learned, for a peer or a state directory: everything must be known by now. */
export function learningSpec(
  flags: DataFlags & LearningFlags,
  found: {
    readonly model: ModelName
    readonly dimension: number
    readonly classes: number | undefined
    readonly batch: number
  }
): LearningSpec {
  return {
    model: found.model,
    dimension: found.dimension,
    classes: found.model === 'softmax' ? found.classes : undefined,
    l2: flags.l2,
    rule: flags.rule ?? defaultRule,
    averaging: flags.average ?? defaultAveraging,
    batch: found.batch,
    features: featureSpec(flags)
  }
}

/** Stream options for data that an existing model reads. */
export function streamFor(spec: LearningSpec, flags: Partial<DataFlags>): StreamOptions {
  const { features, model, classes, dimension } = spec
  const builtIn = flags.data === 'digits' || flags.data === 'digits:test'
  const fixed = flags.format === 'idx' || /idx3-ubyte/.test(flags.data ?? '')
  return streamOptions(
    {
      ...flags,
      constant: features.constant,
      hashBits: features.hashBits,
      scale: features.scale,
      classNames: features.classNames,
      classes: features.classNames || builtIn || fixed || model === 'linear' ? undefined : (classes ?? 2),
      dimension: features.hashBits || builtIn || fixed ? undefined : dimension - (features.constant ? 1 : 0)
    },
    model
  )
}

export type { PredictWith }

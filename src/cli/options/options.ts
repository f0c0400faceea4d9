/** Options that several commands share. `--config` files use the same names, and `task-options.ts` maps them to a task. */
import { type Command, Option } from 'commander'
import {
  type AveragingSpec,
  averages,
  averagingNames,
  type DriftTest,
  defaultAveraging,
  defaultRule,
  driftTests,
  type RuleSpec,
  ruleNames,
  rules,
  type TargetScale,
  type Trust
} from '../../learner/index.js'
import { type Delimiter, type Format, formatNames, type Shard } from '../../streams/index.js'
import type { BatchOption, ClassWeights } from '../../task/option-values.js'
import { PEER_BATCH } from '../../task/spec.js'
import { type NetworkFlags, parseModelWord, withExecution, withTarget, withText } from './networks.js'
import {
  amount,
  batchSize,
  choice,
  classWeights,
  delimiter,
  lag,
  list,
  named,
  once,
  pairs,
  shard,
  share,
  targetScale,
  whole,
  windows
} from './values.js'

export interface DataFlags {
  readonly data?: string
  readonly format?: Format
  readonly label?: string
  readonly labels?: string
  readonly classes?: number
  readonly classesMax?: number
  readonly classNames?: readonly string[]
  readonly classWeights?: ClassWeights | (string & {})
  readonly schema?: string
  readonly columns?: string[]
  readonly text?: 'words' | 'bigrams'
  readonly delimiter?: Delimiter
  readonly encoding?: string
  readonly decimal?: '.' | ','
  readonly header?: boolean
  readonly na?: string[]
  readonly ignore?: string[]
  readonly weight?: string
  readonly id?: string
  readonly time?: string
  readonly interactions?: readonly (readonly [string, string])[]
  readonly lag?: Readonly<Record<string, readonly number[]>>
  readonly categorical?: string[]
  readonly dimension?: number
  readonly hashBits?: number
  readonly constant: boolean
  readonly scale?: 'none' | 'standard'
  readonly shard?: Shard
  readonly passes?: number
  readonly shuffleWindow?: number
  readonly seed?: number
  readonly limit?: number
  readonly noise?: number
  readonly strict?: boolean
  readonly skipLimit?: number
}

export interface LearningFlags extends NetworkFlags {
  /** A linear model, a preset network, or a file that describes one. */
  readonly model?: string
  readonly rule?: RuleSpec
  readonly average?: AveragingSpec
  readonly batch?: BatchOption
  readonly l2?: number
  readonly targetScale?: TargetScale | 'none'
  readonly sums?: 'exact' | 'lattice'
  readonly localSteps?: number
  readonly localMomentum?: number
  readonly trust?: Trust
  /** Tokens per row, for models that read text. */
  readonly length?: number
  readonly tokenizer?: string
}

/** `--json` and `--config`, which every command has. */
export function withCommon(command: Command): Command {
  return command
    .optionsGroup('Output and files:')
    .option('--json', 'print one JSON object as the last line on stdout')
    .option('--config <file>', 'YAML file of options by long name; flags win')
}

/** Where inputs come from and how they are parsed. */
export function withData(command: Command): Command {
  return command
    .optionsGroup('Inputs:')
    .option(
      '--data <file>',
      'inputs: a file, directory, pattern or URL, - for stdin, digits, digits:test or synthetic',
      once
    )
    .option('--format <name>', `${formatNames.join(', ')} (default: from the file name)`, choice(formatNames))
    .option('--label <column>', 'CSV column or JSON key of the label')
    .option('--labels <file>', 'IDX: the file of labels (default: beside the images)')
    .option('--class-names <list>', 'label texts in the order of their class numbers', list)
    .option('--ignore <list>', 'CSV columns or JSON keys to ignore', list)
    .option('--categorical <list>', 'numeric CSV columns to treat as categories', list)
    .option('--delimiter <char>', 'CSV: comma, semicolon, tab or pipe (default: inferred)', delimiter)
    .option('--encoding <name>', 'encoding of text (default: UTF-8, or UTF-16 by its byte order mark)')
    .option('--decimal <mark>', 'CSV: . or , (default: by column)', choice(['.', ','] as const))
    .option('--header', 'CSV: the first line holds the names of the columns (default)')
    .option('--no-header', 'CSV: the first line is a row')
    .option('--columns <list>', 'CSV: the numeric columns; with --no-header, the names of all', list)
    .option('--na <list>', 'texts of missing values (default: NA, null, -, … in any case)', list)
    .option('--shard <I/N>', 'only every N-th input, starting with the I-th', shard)
    .option('--passes <n>', 'number of passes over the data', whole(1))
    .option('--shuffle-window <rows>', 'shuffle within a window of rows', whole(1, 1_000_000))
    .option('--seed <n>', 'seed of shuffling and of built-in streams', whole(0))
    .option('--limit <rows>', 'maximum number of inputs', whole(0))
    .option('--noise <amount>', 'synthetic: share of flipped classes, or deviation of numbers', amount())
    .option('--skip-limit <share>', 'fail if more inputs are skipped (default: 0.01)', share)
    .option('--strict', 'stop at the first malformed input instead of skipping it')
}

/** What is measured while inputs are learned: rises of the loss, and figures over windows by time. */
export function withMeasurements(command: Command, standard: DriftTest | 'off', windowsHelp: string): Command {
  const tests = [...driftTests, 'off'] as const
  return command
    .option('--drift <test>', `detect rises of the loss: ${tests.join(', ')} (default: ${standard})`, choice(tests))
    .option('--windows <times>', windowsHelp, windows)
}

/** How inputs become features. Stored with a model, so only commands that create one have these options. */
export function withFeatures(command: Command): Command {
  return command
    .option('--dimension <n>', 'number of features (default: inferred)', whole(1))
    .option('--hash-bits <n>', 'hash features (CSV: categories) into 2^n', whole(1, 30))
    .option('--weight <column>', 'CSV column of the weights of inputs')
    .option('--id <column>', 'CSV column that identifies inputs')
    .option('--time <column>', 'CSV column of the times of inputs, not a feature')
    .option('--interactions <list>', 'pairs of columns to multiply, A:B,C:D', pairs)
    .option('--lag <column:rows>', 'values of earlier rows, COLUMN:1,24; repeatable', lag)
    .option('--schema <file>', 'what columns mean: a file (admb schema), or URL/schema')
    .option(
      '--text <how>',
      'CSV: features of texts, words or bigrams (default: words)',
      choice(['words', 'bigrams'] as const)
    )
    .addOption(new Option('--scale <how>', 'numeric columns (default: standard)').choices(['none', 'standard']))
    .option('--no-constant', 'omit the feature that is always 1')
    .option('--classes <n>', 'number of classes (default: inferred)', whole(2))
    .option('--classes-max <n>', 'softmax: maximum number of classes, including later ones', whole(2))
    .option('--class-weights <how>', 'balanced, CLASS=WEIGHT,…, or a YAML file', classWeights)
}

/**
 * The model and how it learns.
 * @param showsNetworks whether the help lists the options of networks
 */
export function withLearning(command: Command, batch: number, showsNetworks = true): Command {
  const isPeer = batch === PEER_BATCH
  command
    .optionsGroup('Learning:')
    .option('--model <name>', 'name, or help, or FILE.yaml (default: by classes)', parseModelWord)
    .option(
      '--rule <name[,key=value]>',
      `${ruleNames.join(', ')}, or help (default: ${defaultRule.name})`,
      named('rule', rules)
    )
    .option(
      '--average <name[,key=value]>',
      `${averagingNames.join(', ')}, or help (default: ${defaultAveraging.name})`,
      named('average', averages)
    )
    .option(
      '--batch <b>',
      `gradients per update${isPeer ? ', or auto' : ''} (default: ${batch})`,
      isPeer ? batchSize : whole(1)
    )
    .option('--l2 <lambda>', 'penalty λ/2·‖w‖²', amount())
    .option('--target-scale <mean:sd>', 'regression: scale of the target, or none (default: inferred)', targetScale)
  return withTarget(withText(withExecution(command, showsNetworks), showsNetworks), showsNetworks)
}

export function withPredictWith<T extends string>(command: Command, words: readonly T[]): Command {
  return command
    .optionsGroup('Learning:')
    .option('--predict-with <which>', `${words.join(', ')} (default: average)`, choice(words))
}

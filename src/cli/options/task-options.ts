/** Maps flags to the options of a task. Defaults and checks are in `src/task`, which serves the library as well. */
import type { StreamOptions } from '../../streams/index.js'
import type { TaskOptions } from '../../task/options.js'
import type { ReadOptions } from '../../task/stream.js'
import type { DataFlags, LearningFlags } from './options.js'

/** Flags that are options of the same name. */
const TASK_FLAGS = [
  ...(['model', 'hashBits', 'classes', 'classNames', 'classWeights', 'classesMax', 'target', 'batch', 'rule'] as const),
  ...([
    'l2',
    'targetScale',
    'sums',
    'localSteps',
    'localMomentum',
    'trust',
    'scale',
    'length',
    'tokenizer',
    'schema'
  ] as const),
  ...(['freeze', 'lora'] as const)
]
const TABLE_FLAGS = ['columns', 'text', 'weight', 'id', 'time', 'interactions'] as const
const READ_FLAGS = [
  ...([
    'data',
    'format',
    'label',
    'labels',
    'ignore',
    'categorical',
    'delimiter',
    'encoding',
    'decimal',
    'header',
    'na'
  ] as const),
  ...(['shard', 'passes', 'shuffleWindow', 'seed', 'noise', 'strict'] as const)
]

/** The task that the flags describe. */
export function taskOptions(flags: Partial<DataFlags> & LearningFlags): TaskOptions {
  const { dimension: features, average: averaging, constant, lag: lags, data, weights: checkpoint } = flags
  return {
    ...pick(flags, TASK_FLAGS),
    features,
    averaging,
    checkpoint,
    // Without --no-constant, the task's default applies.
    ...(constant === false && { constant }),
    data:
      data === undefined ? undefined : { ...(readOptions(flags) as StreamOptions), ...pick(flags, TABLE_FLAGS), lags }
  }
}

/** How inputs are read, independent of a model. */
export function readOptions(flags: Partial<DataFlags>): ReadOptions {
  return {
    ...pick(flags, READ_FLAGS),
    maxRows: flags.limit,
    // Names of columns describe the file; numeric columns describe a model.
    ...(flags.header === false && { columns: flags.columns })
  }
}

/** Some of the fields of an object. */
export function pick<T, K extends keyof T>(from: T, names: readonly K[]): Pick<T, K> {
  return Object.fromEntries(names.map(name => [name, from[name]])) as Pick<T, K>
}

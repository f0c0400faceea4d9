/** Maps flags to the options of a task. Defaults and checks are in `src/task`, which serves the library as well. */
import type { StreamOptions } from '../../streams/index.js'
import type { TaskOptions } from '../../task/options.js'
import type { ReadOptions } from '../../task/stream.js'
import type { DataFlags, LearningFlags } from './options.js'

/** The task that the flags describe. */
export function taskOptions(flags: DataFlags & LearningFlags): TaskOptions {
  const {
    dimension: features,
    average: averaging,
    constant,
    columns,
    text,
    weight,
    id,
    time,
    interactions,
    lag: lags
  } = flags
  const {
    model,
    hashBits,
    classes,
    classNames,
    classWeights,
    classesMax,
    target,
    batch,
    rule,
    l2,
    targetScale,
    onDrift,
    scale,
    length,
    tokenizer,
    schema
  } = flags
  const options = {
    model,
    hashBits,
    classes,
    classNames,
    classWeights,
    classesMax,
    target,
    batch,
    rule,
    l2,
    targetScale,
    onDrift,
    scale,
    length,
    tokenizer,
    schema
  }
  // Without --no-constant, the task's default applies.
  const given = { ...options, features, averaging, ...(constant === false && { constant }) }
  const data =
    flags.data === undefined
      ? undefined
      : { ...readOptions(flags), columns, text, weight, id, time, interactions, lags, data: flags.data }
  return { ...given, data: data as StreamOptions | undefined }
}

/** How inputs are read, independent of a model. */
export function readOptions(flags: Partial<DataFlags>): ReadOptions {
  const { data, format, label, labels, ignore, categorical, delimiter, decimal, header, na } = flags
  const { shard, passes, shuffleWindow, seed, limit: maxRows, noise, strict } = flags
  return {
    data,
    format,
    label,
    labels,
    ignore,
    categorical,
    delimiter,
    decimal,
    header,
    na,
    // Names of columns describe the file; numeric columns describe a model.
    ...(header === false && { columns: flags.columns }),
    shard,
    passes,
    shuffleWindow,
    seed,
    maxRows,
    noise,
    strict
  }
}

/** Test-then-train of linear models in this process, for `admb regret`, `admb tune` and the simulator's file streams. */

import { type ExampleStream, openStream, RunningMoments } from '../../data/index.js'
import { modelNames, type SerialOptions } from '../../learning/index.js'
import type { LinearSpec } from '../../task/learning-spec.js'
import { noData } from '../../task/stream.js'
import { createTask } from '../../task/task.js'
import { UsageError } from '../errors.js'
import { taskOptions } from '../options/settings.js'
import type { Flags } from '../options/table.js'
import { SkippedInputs } from '../output/malformed.js'

export interface Learning {
  readonly stream: ExampleStream
  /** For a `SerialTrainer`. */
  readonly options: SerialOptions & { readonly batch: number }
  /** The running moments of `--scale standard`. */
  readonly moments: RunningMoments
  /** Malformed inputs so far. */
  readonly skipped: SkippedInputs
}

const HINDSIGHT = 'the best predictor in hindsight is known only'

/**
 * @param why beginning of the message about models that are not linear
 * @throws OptionError, UsageError; errors of the stream
 */
export async function openLearning(flags: Flags<'regret' | 'tune'>, why = HINDSIGHT): Promise<Learning> {
  const { model, stream: source, specFor } = await createTask(taskOptions(flags), 'serial')
  if (model !== undefined && model.kind !== 'linear') {
    throw new UsageError(`${why} for the models ${modelNames.join(', ')}`)
  }
  if (source === undefined) throw noData()
  const moments = new RunningMoments()
  const skipped = new SkippedInputs(flags.shard)
  // New classes need room, which these models do not have.
  const { classesMax: _classesMax, ...known } = source
  const stream = await openStream({ ...known, scaling: { moments, frozen: false }, onMalformed: skipped.add })
  const spec = specFor(stream) as Omit<LinearSpec, 'dimension'> & { readonly dimension: number | undefined }
  return { stream, options: { ...spec, predictWith: flags.predictWith }, moments, skipped }
}

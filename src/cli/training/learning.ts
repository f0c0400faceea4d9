/** Test-then-train of linear models in this process, as `admb regret` does it: what is read, and what learns from it. */
import { modelNames, type SerialOptions } from '../../learner/index.js'
import { type ExampleStream, openStream, RunningMoments } from '../../streams/index.js'
import { UsageError } from '../errors.js'
import { isNetwork } from '../options/networks.js'
import type { DataFlags, LearningFlags } from '../options/options.js'
import { modelFor, streamOptions } from '../options/specs.js'
import { malformedLines } from '../output/malformed.js'

export interface SerialFlags extends DataFlags, LearningFlags {
  readonly predictWith?: 'average' | 'current'
}

/** b where none is asked for. */
export const SERIAL_BATCH = 1

export interface Learning {
  readonly stream: ExampleStream
  /** For a `SerialTrainer`. */
  readonly options: SerialOptions & { readonly batch: number }
  /** What `--scale standard` scales by; grows while the stream is read. */
  readonly moments: RunningMoments
}

/** @throws UsageError, errors of the stream */
export async function openLearning(flags: SerialFlags): Promise<Learning> {
  if (isNetwork(flags.model)) {
    throw new UsageError(
      `a best predictor in hindsight is known for ${modelNames.join(', ')} alone: give --model one of them`
    )
  }
  const moments = new RunningMoments()
  const scaling = { moments, frozen: false }
  const stream = await openStream({ ...streamOptions(flags), scaling, onMalformed: malformedLines() })
  const model = modelFor(flags.model, stream)
  const classes = model === 'linear' ? undefined : (flags.classes ?? stream.classes)
  const { rule, average: averaging, l2, predictWith, batch = SERIAL_BATCH } = flags
  const { dimension } = stream
  return { stream, options: { model, classes, dimension, rule, averaging, l2, batch, predictWith }, moments }
}

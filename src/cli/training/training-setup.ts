/** What a run of `admb train` has before it learns: its stream, its model, and the trainer. */
import { Notices } from '../../base/errors.js'
import { openInThread, type ReaderThread, RunningMoments } from '../../data/index.js'
import type { Hosts } from '../../l2l/index.js'
import type { Store } from '../../storage/index.js'
import { checkFits, noData } from '../../task/stream.js'
import { closed, createTask } from '../../task/task.js'
import { TrainingJob } from '../../task/training-job.js'
import { taskOptions } from '../options/settings.js'
import { SkippedInputs } from '../output/malformed.js'
import { formatNumber, showCoverage, warn } from '../output/output.js'
import { rowsBefore } from './continuation.js'
import {
  continued,
  givenFields,
  layerPlace,
  learned,
  linearStart,
  sourceOf,
  storedExecution,
  type TrainFlags,
  validationFor
} from './train-inputs.js'
import { checkContinues, type EarlierRun } from './trained-store.js'

/** An open state directory. */
export interface TrainingStore {
  readonly dir: string
  readonly store: Store
  /** The run that it holds. */
  readonly earlier: EarlierRun | undefined
}

export type TrainingSetup = Awaited<ReturnType<typeof setUpTraining>>

/**
 * @param reader a thread for the stream, if one was started
 * @param hosts waits for the hosts among which the network is divided, if it is
 * @throws UsageError and OptionError for flags that do not go together; errors of the stream, the model and the device
 */
export async function setUpTraining(
  flags: TrainFlags,
  stored: TrainingStore | undefined,
  reader: ReaderThread | undefined,
  hosts: (() => Promise<Hosts>) | undefined
) {
  const imported = await linearStart(flags, stored?.earlier)
  const earlier = stored?.earlier ?? imported
  const balances = flags.classWeights === 'balanced'
  // Balanced weights of earlier runs are kept, although the rows differ.
  const balanced = earlier !== undefined && balances ? { ...flags, classWeights: undefined } : flags
  const wanted = imported ? { ...balanced, weights: undefined } : continued(balanced, earlier)
  const { stream: first, specFor, coverage, moments: starting } = await createTask(taskOptions(wanted), 'serial')
  if (first === undefined) throw noData()
  const given = earlier === undefined ? first : await sourceOf(earlier.spec, flags)
  const source = learned(given, flags)
  const { moments, unfinished } = earlier?.progress ?? {}
  const scaling = {
    moments: RunningMoments.restore(moments ?? starting ?? []),
    frozen: false
  }
  const skipped = new SkippedInputs(flags.shard)
  const notices = new Notices(warn)
  // A run that scores rows after each pass cannot be continued within one.
  const isContinuable = stored !== undefined && flags.holdout === undefined && flags.validation === undefined
  const resume = isContinuable ? rowsBefore(source, unfinished) : undefined
  const reports = { onMalformed: skipped.add, onNotice: notices.add }
  const stream = await openInThread({ ...source, scaling, scaleLater: isContinuable, resume, ...reports }, reader)
  if (resume !== undefined) {
    warn(`continues after ${formatNumber(resume)} rows of ${source.data}, where the last run ended`)
  }
  // On a terminal, a long run shows at its start what was inferred.
  if (stream.summary && process.stderr.isTTY) warn(stream.summary)
  notices.show()
  const spec = earlier?.spec ?? specFor(stream)
  if (earlier !== undefined) {
    const described = closed(specFor(stream), earlier.spec.dimension, stream)
    if (stored?.earlier !== undefined) checkContinues(stored.dir, stored.earlier, described, givenFields(wanted))
    checkFits(earlier.spec, stream)
  }
  const execution = storedExecution(flags, earlier)
  const place = layerPlace(execution, flags.dir, stored?.earlier)
  const { predictWith, drift } = flags
  const job = await TrainingJob.start({ spec, execution, predictWith, earlier: earlier?.trained, place, hosts })
  if (earlier === undefined) showCoverage(coverage)
  if (drift !== undefined && drift !== 'off') job.trainer.watchDrift()
  const validation = validationFor(flags, given, spec.dimension === undefined, scaling.moments)
  return {
    flags,
    stored,
    /** The run that this one continues, in the directory or in the file of `--weights`. */
    earlier,
    /** The rows that are learned, and their first pass. */
    source,
    stream,
    scaling,
    skipped,
    notices,
    /** Whether the same command can continue within the data. */
    isContinuable,
    /** Rows before the first one, if the run continues within its data. */
    resume,
    job,
    validation
  }
}

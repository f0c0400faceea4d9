/** `admb train`: trains on a stream in one process, without a network. */

import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import type { Command } from 'commander'
import { STORES } from '../../l2l/executor/types.js'
import { DriftLog, describeAlarm } from '../../learner/index.js'
import type { UnfinishedRun } from '../../peer/thread-messages.js'
import { LagHistory, listed, openInThread, openStream, RunningMoments, startReader } from '../../streams/index.js'
import { ClassNumbers } from '../../task/class-numbers.js'
import { SERIAL_BATCH } from '../../task/spec.js'
import { checkFits, noData } from '../../task/stream.js'
import { closed, createTask } from '../../task/task.js'
import { trainerFor } from '../../task/trainer.js'
import { InterruptedError, isBug, UsageError } from '../errors.js'
import { withTuning, withWeights } from '../options/networks.js'
import {
  withCommon,
  withData,
  withFeatures,
  withLearning,
  withMeasurements,
  withPredictWith
} from '../options/options.js'
import { taskOptions } from '../options/task-options.js'
import { bytes, choice, heldOut, once, whole } from '../options/values.js'
import { showCoverage } from '../output/coverage.js'
import { SkippedInputs } from '../output/malformed.js'
import { summary } from '../output/metric-lines.js'
import { formatNumber, ProgressLine, print, warn } from '../output/output.js'
import { ProgressLog, progressEntry } from '../output/progress-log.js'
import { ProgressTable } from '../output/progress-table.js'
import { progressLine, showTrained } from '../output/train-report.js'
import { Continuation, preparationOf, reportSince, rowsBefore } from '../training/continuation.js'
import { LayeredRun } from '../training/layered-run.js'
import { learnStream } from '../training/learn-stream.js'
import { withReadableWeights } from '../training/stored-weights.js'
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
} from '../training/train-inputs.js'

export function trainCommand(program: Command): Command {
  const command = program.command('train')
  withMeasurements(
    withPredictWith(withTuning(withWeights(withLearning(withFeatures(withData(command)), SERIAL_BATCH))), [
      'average',
      'current'
    ] as const),
    'off',
    'figures over these times of inputs (default: 1h,1d with --time)'
  )
    .option('--dir <dir>', 'directory of the predictor: to store it in, and to continue from')
    .option(
      '--store <where>',
      `${STORES.join(', ')}: where a network and its optimizer state are (default: memory)`,
      choice(STORES)
    )
    .option('--host-memory <bytes>', '--store disk: memory for what is on the disk (default: 1GiB)', bytes)
    .option('--holdout <share>', 'score this share of the rows after each pass instead of learning it', heldOut)
    .option('--validation <file>', 'the same with the rows of this file', once)
    .option('--patience <passes>', 'end after passes without improvement (default: 3)', whole(1))
    .option('--log <file>', 'append losses to this file, for admb regret')
    .addHelpText(
      'after',
      `
Examples:
  admb train --data digits
  admb train --data digits --model mlp --schedule l2l-p --microbatch 16
  admb train --data ads.svm.gz --model logistic --dir model
  admb train --data ads.csv --label sold --passes 50 --holdout 0.1
  admb train --weights bert --lora rank=8 --data pairs.tsv --label same
  zcat clicks.vw.gz | admb train --data - --format vw --hash-bits 20 --json`
    )
  return withCommon(command).action(train)
}

async function train(given: TrainFlags): Promise<void> {
  const flags = await withReadableWeights(given)
  // Its start overlaps with loading the database.
  const reader = await startReader({ data: flags.data ?? '', format: flags.format, passes: flags.passes })
  // Imported here: the help does not need the database and libp2p's keys.
  const { checkContinues, endedEarly, keep, openForTraining } = await import('../training/trained-store.js')
  const { store, earlier: stored } = flags.dir === undefined ? {} : await openForTraining(flags.dir)
  try {
    const start = performance.now()
    const imported = await linearStart(flags, stored)
    const earlier = stored ?? imported
    const balances = flags.classWeights === 'balanced'
    // Balanced weights of earlier runs are kept, although the rows differ.
    const balanced = earlier !== undefined && balances ? { ...flags, classWeights: undefined } : flags
    const wanted = imported ? { ...balanced, weights: undefined } : continued(balanced, earlier)
    const { stream: first, specFor, coverage } = await createTask(taskOptions(wanted), 'serial')
    if (first === undefined) throw noData()
    const given = earlier === undefined ? first : await sourceOf(earlier.spec, flags)
    const source = learned(given, flags)
    const { moments, history } = earlier?.progress ?? {}
    const scaling = {
      moments: RunningMoments.restore(moments ?? []),
      history: LagHistory.restore(history),
      frozen: false
    }
    const skipped = new SkippedInputs(flags.shard)
    // A run that scores rows after each pass cannot be continued within one.
    const isContinuable = store !== undefined && flags.holdout === undefined && flags.validation === undefined
    const { unfinished } = earlier?.progress ?? {}
    const resume = isContinuable ? rowsBefore(source, unfinished) : undefined
    const reports = { onMalformed: skipped.add, onNotice: warn }
    const stream = await openInThread({ ...source, scaling, scaleLater: isContinuable, resume, ...reports }, reader)
    if (resume !== undefined)
      warn(`continues after ${formatNumber(resume)} rows of ${source.data}, where the last run ended`)
    // On a terminal, a long run shows at its start what was inferred.
    if (stream.summary && process.stderr.isTTY) warn(stream.summary)
    const spec = earlier?.spec ?? specFor(stream)
    if (earlier !== undefined) {
      const given = closed(specFor(stream), earlier.spec.dimension, stream)
      if (stored !== undefined) checkContinues(flags.dir as string, stored, given, givenFields(wanted))
      checkFits(earlier.spec, stream)
    }
    const execution = storedExecution(flags, earlier)
    const place = layerPlace(execution, flags.dir, stored)
    const { trainer, device, plan, report, layers } = await trainerFor(
      spec,
      execution,
      flags.predictWith,
      earlier !== undefined,
      place
    )
    if (earlier === undefined) showCoverage(coverage)
    if (earlier !== undefined) trainer.resume(earlier.trained)
    const { drift: test = 'off' } = flags
    if (test !== 'off') trainer.watchDrift(test)
    else if (flags.drift !== undefined && spec.onDrift !== undefined) {
      throw new UsageError('--on-drift needs a test of drift: omit --drift off')
    }
    if (spec.features.columns?.some(({ role }) => role === 'time')) trainer.watchTime(flags.windows)
    else if (flags.windows !== undefined) {
      throw new UsageError('--windows needs the times of inputs: name their column by --time')
    }
    const alarms = new DriftLog()
    const log = flags.log === undefined ? undefined : new ProgressLog(flags.log)
    const run = `train ${randomUUID()}`
    const { batch, network } = spec
    const learnsUnlabelled = network?.target.kind === 'next-token'
    const continuation = new Continuation({ stream: source, batch, learnsUnlabelled, earlier: unfinished })
    const { pending } = continuation
    if (pending !== undefined) continuation.learn(pending, part => trainer.learn(part), true)
    const before = trainer.report()
    const preparation = isContinuable ? preparationOf(source, stream, scaling) : undefined
    const progress = new ProgressLine()
    const numbers = new ClassNumbers(spec, trainer, earlier?.trained.parameters)
    const table = tableFor(flags, progress, numbers.names ?? spec.features.classNames)
    const validation = validationFor(flags, given, spec.dimension === undefined, scaling.moments)
    const known = (dimension: number) => earlier?.spec ?? closed(spec, dimension, stream)
    const state = (unfinished: UnfinishedRun | undefined) => {
      const moments = spec.features.scale === 'standard' ? scaling.moments.save() : undefined
      const hasLags = spec.features.columns?.some(({ kind }) => kind === 'lag')
      return { moments, ...(hasLags && { history: scaling.history.save() }), unfinished }
    }
    const resumable = () => (isContinuable && stream.isReplayable ? continuation.state : undefined)
    const committed =
      layers && store && spec.dimension !== undefined
        ? await LayeredRun.start({ layers, store, spec: known(spec.dimension), before, earlier: earlier?.progress })
        : undefined
    const commit = () => committed?.note(trainer.report(), () => state(resumable()))
    commit()
    let rowsRead = 0
    async function* passes() {
      for (let pass = 1; ; pass++) {
        if (pass > 1) scaling.history.clear()
        const rows = pass === 1 ? stream : await openStream({ ...source, scaling })
        for await (const batch of rows) {
          rowsRead += batch.size
          yield numbers.apply(batch)
        }
        if (validation === undefined) return
        const trained = trainer.snapshot()
        const { metrics, continues } = await validation.add(trained, known(trained.dimension))
        progress.clear()
        if (!flags.json) print(`pass ${pass}`.padEnd(16) + summary(metrics))
        if (!continues || pass >= (flags.passes ?? 1)) return
      }
    }
    const early = await learnStream({
      stream: passes(),
      prepare: preparation && ((rows, from, to) => preparation.next(rows, from, to)),
      trainer: { learn: part => continuation.learn(part, rows => trainer.learn(rows)) },
      // A network's step takes a while, so signals are polled after each.
      slice: spec.model === 'network' ? spec.batch : undefined,
      catchesSignals: store !== undefined,
      rowsLeft: table && (() => table.left),
      onLearned() {
        log?.note(progressEntry(run, trainer.report()))
        for (const alarm of alarms.take(trainer.drift)) {
          progress.clear()
          warn(describeAlarm(alarm))
        }
        table?.note({ ...trainer.report(), last: trainer.last })
        progress.show(() => progressLine(trainer.report(), start, stream.share))
        commit()
      }
    })
    progress.clear()
    const left = early && resumable()
    const ended = async () => {
      const isDropped = early !== undefined && (left !== undefined || !(early instanceof InterruptedError))
      const last = trainer.finish(isDropped ? 'drop' : 'learn')
      const trained = validation?.trained ?? last
      log?.end(progressEntry(run, trainer.report()))
      if (committed) return committed.end(last, trainer.report(), state(left))
      const report = reportSince(before, trainer.report())
      const id = await keep(store, known(trained.dimension), trained, report, state(left), earlier)
      if (stored?.place) rmSync(stored.place.folder, { recursive: true, force: true })
      layers?.close(undefined)
      return id
    }
    // The rows since the last commit are learned again.
    if (early && committed && !isBug(early) && (committed.hasFailed || continuation.state === undefined)) {
      throw await committed.interrupted(early, flags.dir as string, isContinuable && stream.isReplayable)
    }
    if (early && store) {
      throw await endedEarly(early, flags.dir as string, () => trainer.report(), ended, left !== undefined)
    }
    if (early) throw early
    // The rows of an incomplete batch are learned at the end.
    if (resume === undefined)
      skipped.requireInputs(source.data, rowsRead - trainer.report().unlabelled, trainer.report().unlabelled)
    const id = await ended()
    const { inputs, unlabelled } = trainer.report()
    const seconds = (performance.now() - start) / 1000
    const cost = { seconds, skipped: stream.skipped, data: stream.summary, device, plan, relay: report?.() }
    showTrained(flags, trainer, { ...cost, validation: validation?.report }, id)
    if (numbers.refused.size > 0) {
      warn(`there is no room for the classes ${listed([...numbers.refused])}: increase --classes-max`)
    }
    skipped.checkLimit(source.data, inputs, unlabelled, flags.skipLimit)
  } finally {
    await store?.close()
  }
}

/** The table on a terminal, unless the output is for a program. */
function tableFor({ json }: TrainFlags, progress: ProgressLine, classNames: readonly string[] | undefined) {
  if (json || process.stderr.isTTY !== true) return undefined
  return new ProgressTable(line => {
    progress.clear()
    process.stderr.write(`${line}\n`)
  }, classNames)
}

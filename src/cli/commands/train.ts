/** `admb train`: trains on a stream in one process, without a network. */

import { randomUUID } from 'node:crypto'
import type { Command } from 'commander'
import { formatBytes } from '../../base/format-bytes.js'
import type { ExecutionReport, Plan } from '../../l2l/index.js'
import { DriftLog, type DriftTest, describeAlarm, type SerialReport, type SerialTrainer } from '../../learner/index.js'
import {
  LagHistory,
  listed,
  openInThread,
  openStream,
  RunningMoments,
  type StreamOptions,
  startReader
} from '../../streams/index.js'
import { ClassNumbers } from '../../task/class-numbers.js'
import { growingNames, type LearningSpec } from '../../task/learning-spec.js'
import { checkFits, noData, streamFor } from '../../task/stream.js'
import { closed, createTask, SERIAL_BATCH } from '../../task/task.js'
import { moreText } from '../../task/text.js'
import { trainerFor } from '../../task/trainer.js'
import { InterruptedError, UsageError } from '../errors.js'
import { executionOf, withTuning, withWeights } from '../options/networks.js'
import {
  type DataFlags,
  type LearningFlags,
  withCommon,
  withData,
  withDrift,
  withFeatures,
  withLearning,
  withPredictWith
} from '../options/options.js'
import { readOptions, taskOptions } from '../options/task-options.js'
import { heldOut, once, whole } from '../options/values.js'
import { showCoverage } from '../output/coverage.js'
import { SkippedInputs } from '../output/malformed.js'
import { driftSummary, figureLines, summary, windowLines } from '../output/metric-lines.js'
import { formatNumber, ProgressLine, print, printJson, timeLeft, warn } from '../output/output.js'
import { showOutcome } from '../output/plan-table.js'
import { ProgressLog, progressEntry } from '../output/progress-log.js'
import { ProgressTable } from '../output/progress-table.js'
import { Continuation, preparationOf, reportSince, rowsBefore } from '../training/continuation.js'
import { learnStream } from '../training/learn-stream.js'
import { withReadableWeights } from '../training/stored-weights.js'
import type { EarlierRun } from '../training/trained-store.js'
import { Validation, type ValidationReport } from '../training/validation.js'

interface Flags extends DataFlags, LearningFlags {
  readonly predictWith?: 'average' | 'current'
  readonly dir?: string
  readonly log?: string
  readonly drift?: DriftTest | 'off'
  /** Every n-th row. */
  readonly holdout?: number
  readonly validation?: string
  readonly patience?: number
  readonly json?: boolean
}

export function trainCommand(program: Command): Command {
  const command = program.command('train')
  withDrift(
    withPredictWith(withTuning(withWeights(withLearning(withFeatures(withData(command)), SERIAL_BATCH))), [
      'average',
      'current'
    ] as const),
    'off'
  )
    .option('--dir <dir>', 'directory of the predictor: to store it in, and to continue from')
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

async function train(given: Flags): Promise<void> {
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
    const skipped = new SkippedInputs()
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
    const { trainer, device, plan, report } = await trainerFor(
      spec,
      executionOf(flags),
      flags.predictWith,
      earlier !== undefined
    )
    if (earlier === undefined) showCoverage(coverage)
    if (earlier !== undefined) trainer.resume(earlier.trained)
    const { drift: test = 'off' } = flags
    if (test !== 'off') trainer.watchDrift(test)
    else if (flags.drift !== undefined && spec.onDrift !== undefined) {
      throw new UsageError('--on-drift needs a test of drift: omit --drift off')
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
        progress.show(() => describe(trainer.report(), start, stream.share))
      }
    })
    progress.clear()
    const left = early && isContinuable && stream.isReplayable ? continuation.state : undefined
    const ended = async () => {
      const isDropped = early !== undefined && (left !== undefined || !(early instanceof InterruptedError))
      const last = trainer.finish(isDropped ? 'drop' : 'learn')
      const trained = validation?.trained ?? last
      log?.end(progressEntry(run, trainer.report()))
      const moments = spec.features.scale === 'standard' ? scaling.moments.save() : undefined
      const hasLags = spec.features.columns?.some(({ kind }) => kind === 'lag')
      const state = { moments, ...(hasLags && { history: scaling.history.save() }), unfinished: left }
      const report = reportSince(before, trainer.report())
      return keep(store, known(trained.dimension), trained, report, state, earlier?.progress)
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
    show(flags, trainer, { ...cost, validation: validation?.report }, id)
    if (numbers.refused.size > 0) {
      warn(`there is no room for the classes ${listed([...numbers.refused])}: increase --classes-max`)
    }
    skipped.checkLimit(source.data, inputs, unlabelled, flags.skipLimit)
  } finally {
    await store?.close()
  }
}

/** The flags that describe the model. For a model with frozen weights that is continued, `--weights` only says where they are. */
function continued(flags: Flags, earlier: EarlierRun | undefined): Flags {
  const isTuned = earlier?.spec.network?.tuning !== undefined
  return isTuned && flags.freeze === undefined && flags.lora === undefined ? { ...flags, weights: undefined } : flags
}

/** A run that starts from the weights of a linear model in a file; undefined without one. @throws UsageError */
async function linearStart(flags: Flags, stored: EarlierRun | undefined): Promise<EarlierRun | undefined> {
  if (flags.weights === undefined) return undefined
  const { linearFrom } = await import('../linear/formats.js')
  const found = await linearFrom(flags.weights, taskOptions(flags))
  if (found === undefined) return undefined
  if (stored !== undefined) throw new UsageError(`${flags.dir} holds a predictor already: leave --weights out`)
  if (flags.onDrift !== undefined || flags.classWeights !== undefined) {
    throw new UsageError(
      '--weights of a linear model brings its class weights: leave --class-weights and --on-drift out'
    )
  }
  const { spec, predictor, scaling } = found
  const { parameters, average, state } = predictor
  const moments = spec.features.scale === 'standard' ? scaling.moments.save() : undefined
  const trained = { parameters, average, state, updates: 0, dimension: spec.dimension }
  return { spec, trained, progress: { inputs: 0, surplus: 0, loss: 0, moments } }
}

/** The rows that are learned. With validation, passes are read one by one. */
function learned(given: StreamOptions, { holdout, validation }: Flags): StreamOptions {
  if (holdout === undefined) return validation === undefined ? given : { ...given, passes: 1 }
  return { ...given, passes: 1, holdout: { every: holdout, part: 'learn' } }
}

/** @throws UsageError if the flags do not go together */
function validationFor(
  flags: Flags,
  given: StreamOptions,
  isOpen: boolean,
  moments: RunningMoments
): Validation | undefined {
  const { holdout, validation: file, patience = 3, predictWith = 'average' } = flags
  if (holdout === undefined && file === undefined) {
    if (flags.patience === undefined) return undefined
    throw new UsageError('--patience is for validation: give --holdout SHARE or --validation FILE as well')
  }
  if (holdout !== undefined && file !== undefined) throw new UsageError('give either --holdout or --validation')
  if (given.data === '-' && (holdout !== undefined || (flags.passes ?? 1) > 1)) {
    throw new UsageError('standard input can be read only once: give --validation FILE and one pass')
  }
  const { shuffleWindow: _window, ...rows } = given
  const streamOf = async (spec: LearningSpec): Promise<StreamOptions> => {
    if (holdout !== undefined) return { ...rows, passes: 1, holdout: { every: holdout, part: 'validate' } }
    const { data, format, labels, label, strict } = readOptions({ ...flags, data: file })
    const { dimension, ...stream } = streamFor(spec, { data, format, labels, label, strict })
    const tokens = spec.network && (await moreText(spec.network, { ...readOptions(flags), data: file }, true))
    // A model that grows with its data may meet features that it has not seen.
    return { ...stream, ...(isOpen ? {} : { dimension }), ...(tokens && { tokens }) }
  }
  return new Validation({ streamFor: streamOf, execution: executionOf(flags), predictWith, patience, moments })
}

/** Further inputs for the model of an earlier run. */
async function sourceOf(spec: LearningSpec, flags: Flags): Promise<StreamOptions> {
  const options = readOptions(flags)
  const tokens = spec.network && (await moreText(spec.network, options, true))
  const newClasses = growingNames(spec) !== undefined
  return { ...streamFor(spec, options), passes: flags.passes, tokens, newClasses }
}

/** Parts of the spec that options were given for; the others are those of the earlier run. */
function givenFields({
  model,
  weights,
  rule,
  average,
  batch,
  l2,
  onDrift,
  classWeights
}: Flags): (keyof LearningSpec)[] {
  const given = {
    model: model ?? weights,
    network: model ?? weights,
    rule,
    averaging: average,
    batch,
    l2,
    onDrift,
    classWeights
  }
  return (Object.keys(given) as (keyof typeof given)[]).filter(field => given[field] !== undefined)
}

/** The table on a terminal, unless the output is for a program. */
function tableFor({ json }: Flags, progress: ProgressLine, classNames: readonly string[] | undefined) {
  if (json || process.stderr.isTTY !== true) return undefined
  return new ProgressTable(line => {
    progress.clear()
    process.stderr.write(`${line}\n`)
  }, classNames)
}

function describe({ inputs, averageLoss, accuracy }: SerialReport, start: number, share: number | undefined): string {
  const seconds = (performance.now() - start) / 1000
  const hits = accuracy === undefined ? '' : `, accuracy ${(100 * accuracy).toFixed(2)} %`
  const rate = `${formatNumber(inputs / seconds)} inputs/s`
  return `${formatNumber(inputs)} inputs, loss ${(averageLoss ?? 0).toFixed(4)}${hits}, ${rate}${timeLeft(share, seconds)}`
}

interface Cost {
  readonly seconds: number
  readonly skipped: number
  /** What was inferred of the data. */
  readonly data: string | undefined
  readonly validation?: ValidationReport
  readonly device?: string
  readonly plan?: Plan
  readonly relay?: ExecutionReport
}

function show(
  { json, dir }: Flags,
  trainer: SerialTrainer,
  { seconds, skipped, data, validation, device, plan, relay }: Cost,
  predictor: object
): void {
  const { inputs, weight, updates, averageLoss = 0, accuracy, unlabelled } = trainer.report()
  const metrics = trainer.metrics()
  const { drift } = trainer
  const inputsPerSecond = inputs / seconds
  if (json) {
    const skippedAll = skipped + unlabelled
    printJson({
      command: 'train',
      data,
      inputs,
      ...(weight === inputs ? {} : { weight }),
      updates,
      averageLoss,
      accuracy,
      metrics,
      drift,
      validation,
      skipped: skippedAll,
      seconds,
      inputsPerSecond,
      device,
      plan,
      relay,
      predictor
    })
    return
  }
  if (data !== undefined) print(`data            ${data}`)
  print(
    `inputs          ${formatNumber(inputs)}${skipped > 0 ? ` (${formatNumber(skipped)} malformed inputs skipped)` : ''}`
  )
  if (weight !== inputs) print(`weight          ${formatNumber(weight)}`)
  print(`updates         ${formatNumber(updates)}`)
  print(`average loss    ${averageLoss.toFixed(5)}   (each input scored before it was learned)`)
  if (accuracy !== undefined) print(`accuracy        ${(100 * accuracy).toFixed(2)} %`)
  if (metrics !== undefined)
    for (const line of [...figureLines(metrics.total, 16), ...windowLines(metrics, 16)]) print(line)
  if (drift !== undefined && drift.alarms > 0) print(`drift           ${driftSummary(drift)}`)
  if (validation !== undefined) {
    const { best, passes, metrics } = validation
    print(`validation      ${summary(metrics)}, best after pass ${best} of ${passes}`)
  }
  print(`time            ${seconds.toFixed(2)} s, ${formatNumber(inputsPerSecond)} inputs/s`)
  if (device !== undefined) print(`device          ${device}`)
  if (relay !== undefined) {
    const { stepMs, exposedMs, devicePeakBytes, hostPeakBytes, dropped, workers, lostSteps } = relay
    print(`step            ${stepMs.toFixed(1)} ms, ${exposedMs.toFixed(1)} ms of it waiting for the parameter server`)
    print(
      `memory          ${formatBytes(devicePeakBytes)} on the device, ${formatBytes(hostPeakBytes)} on the host, peak`
    )
    if (workers > 1) print(`devices         ${workers} at the end, each with this memory`)
    if (lostSteps > 0) print(`lost            ${lostSteps} steps of failed devices`)
    if (plan) showOutcome(plan, relay)
    if (dropped > 0) print(`dropped         ${dropped} gradients that were not finite`)
  }
  if (dir !== undefined) print(`stored in       ${dir}   (try: admb eval --dir ${dir} --data FILE)`)
}

/** A run of `admb train`: it learns the stream, reports what it learns, and stores the predictor. */
import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import type { PredictorId } from '../../admb/index.js'
import { importance } from '../../base/errors.js'
import { listed, openStream, Preparation, type Rows } from '../../data/index.js'
import { DriftLog, describeAlarm, type SerialReport } from '../../learning/index.js'
import type { UnfinishedRun } from '../../peer/thread-messages.js'
import type { TrainingJob } from '../../task/training-job.js'
import { InterruptedError, isBug } from '../errors.js'
import { summary } from '../output/metric-lines.js'
import { ProgressLine, print, warn } from '../output/output.js'
import { ProgressLog, progressEntry } from '../output/progress-log.js'
import { ProgressTable, progressLine, showTrained } from '../output/train-report.js'
import { Continuation, learnStream, reportSince } from './continuation.js'
import { LayeredRun } from './layered-run.js'
import { endedEarly, keep, type StreamState } from './trained-store.js'
import type { TrainingSetup } from './training-setup.js'

export class TrainingRun {
  readonly #setup: TrainingSetup
  readonly #job: TrainingJob
  /** When the command started, in milliseconds of `performance.now`. */
  readonly #start: number
  readonly #continuation: Continuation
  /** Standardises rows by the rows before them, and multiplies interactions. */
  readonly #preparation: Preparation | undefined
  /** Inputs of the run before, whose rows were learned again. */
  readonly #before: SerialReport
  readonly #name = `train ${randomUUID()}`
  readonly #alarms = new DriftLog()
  readonly #progress = new ProgressLine()
  readonly #log: ProgressLog | undefined
  /** On a terminal, unless the output is for a program. */
  readonly #table: ProgressTable | undefined
  /** Commits of a network on the disk. */
  #commits: LayeredRun | undefined
  /** Report of the first of several passes, whose rows were scored before they were learned. */
  #firstPass: SerialReport | undefined
  #rowsRead = 0

  constructor(setup: TrainingSetup, start: number) {
    const { flags, earlier, source, stream, scaling, job } = setup
    const { spec, trainer } = job
    this.#setup = setup
    this.#job = job
    this.#start = start
    this.#log = flags.log === undefined ? undefined : new ProgressLog(flags.log)
    const learnsUnlabelled = spec.network?.target.kind === 'next-token'
    const { unfinished } = earlier?.progress ?? {}
    this.#continuation = new Continuation({ stream: source, batch: spec.batch, learnsUnlabelled, earlier: unfinished })
    const { pending } = this.#continuation
    if (pending !== undefined) this.#continuation.learn(pending, part => trainer.learn(part), true)
    this.#before = trainer.report()
    const { schema, hashBits, scale } = stream
    const { constant = false } = source
    if (setup.isContinuable) this.#preparation = Preparation.for({ schema, hashBits, constant, scale }, scaling)
    if (!flags.json && process.stderr.isTTY === true) {
      this.#table = new ProgressTable(line => {
        this.#progress.clear()
        process.stderr.write(`${line}\n`)
      }, job.names ?? spec.features.classNames)
    }
  }

  /** Learns to the end of the stream, and prints the result. @throws what ended the run early, with what is stored */
  async run(): Promise<void> {
    const { flags, resume, skipped, source } = this.#setup
    const { refused, trainer } = this.#job
    await this.#startCommits()
    const early = await this.#learn()
    this.#progress.clear()
    if (early) throw await this.#endedEarly(early)
    // The rows of an incomplete batch are learned at the end.
    const { unlabelled } = trainer.report()
    if (resume === undefined) skipped.requireInputs(source.data, this.#rowsRead - unlabelled, unlabelled)
    const id = await this.#end('learn', undefined)
    this.#show(id)
    if (refused.size > 0) warn(`there is no room for the classes ${listed([...refused])}: increase --classes ..MAX`)
    const { inputs } = trainer.report()
    skipped.checkLimit(source.data, inputs, unlabelled, flags.skipLimit)
  }

  /** @returns the error or signal that ended the run before the stream's end */
  #learn(): Promise<Error | undefined> {
    const { spec } = this.#job
    const [preparation, table] = [this.#preparation, this.#table]
    return learnStream({
      stream: this.#passes(),
      prepare: preparation && ((rows, from, to) => preparation.scaled(rows, undefined, from, to)),
      trainer: { learn: part => this.#continuation.learn(part, rows => this.#job.learn(rows)) },
      // A network's step takes a while, so signals are polled after each.
      slice: spec.model === 'network' ? spec.batch : undefined,
      catchesSignals: this.#setup.stored !== undefined,
      rowsLeft: table && (() => table.left),
      onLearned: () => this.#note()
    })
  }

  async *#passes(): AsyncGenerator<Rows> {
    const { flags, source, stream, scaling, validation } = this.#setup
    const { trainer } = this.#job
    for (let pass = 1; ; pass++) {
      const rows = pass === 1 ? stream : await openStream({ ...source, scaling })
      for await (const batch of rows) {
        if (pass > 1 || (batch.pass ?? 0) > 0) this.#firstPass ??= trainer.report()
        this.#rowsRead += batch.size
        yield this.#job.numbered(batch)
      }
      if (validation === undefined) return
      const trained = trainer.snapshot()
      const { metrics, continues } = await validation.add(trained, this.#job.specOf(trained.dimension, stream))
      this.#progress.clear()
      if (!flags.json) print(`pass ${pass}`.padEnd(16) + summary(metrics))
      if (!continues || pass >= (flags.passes ?? 1)) return
    }
  }

  /** After some rows were learned. */
  #note(): void {
    const { trainer } = this.#job
    this.#log?.note(progressEntry(this.#name, trainer.report()))
    for (const alarm of this.#alarms.take(trainer.drift)) {
      this.#progress.clear()
      warn(describeAlarm(alarm))
    }
    this.#table?.note({ ...trainer.report(), last: trainer.last })
    this.#progress.show(() => progressLine(trainer.report(), this.#start, this.#setup.stream.share))
    this.#commit()
  }

  async #startCommits(): Promise<void> {
    const { earlier, stored, stream } = this.#setup
    const { network, spec } = this.#job
    const { layers } = network
    if (layers === undefined || stored === undefined || spec.dimension === undefined) return
    const known = this.#job.specOf(spec.dimension, stream)
    const options = { layers, store: stored.store, spec: known, before: this.#before }
    this.#commits = await LayeredRun.start({ ...options, earlier: earlier?.progress })
    this.#commit()
  }

  #commit(): void {
    this.#commits?.note(this.#job.trainer.report(), () => this.#stateOf(this.#unfinished))
  }

  /** @param unfinished where the same command continues. @returns the id of the predictor */
  async #end(incomplete: 'learn' | 'drop', unfinished: UnfinishedRun | undefined): Promise<PredictorId> {
    const { earlier, stored, stream, validation } = this.#setup
    const { network, trainer } = this.#job
    const last = trainer.finish(incomplete)
    const trained = validation?.trained ?? last
    const report = trainer.report()
    const state = this.#stateOf(unfinished)
    this.#log?.end(progressEntry(this.#name, report))
    if (this.#commits) return this.#commits.end(last, report, state)
    const spec = this.#job.specOf(trained.dimension, stream)
    const id = await keep(stored?.store, spec, trained, reportSince(this.#before, report), state, earlier)
    const { place } = stored?.earlier ?? {}
    if (place) rmSync(place.folder, { recursive: true, force: true })
    network.layers?.close(undefined)
    network.close?.()
    return id
  }

  /** Stores what was learned. @returns the error to report */
  async #endedEarly(error: Error): Promise<Error> {
    const { isContinuable, stored, stream } = this.#setup
    if (stored === undefined) return error
    const { dir } = stored
    // The rows since the last commit are learned again.
    if (this.#commits && !isBug(error) && (this.#commits.hasFailed || this.#continuation.state === undefined)) {
      return this.#commits.interrupted(error, dir, isContinuable && stream.isReplayable)
    }
    const left = this.#unfinished
    const incomplete = left !== undefined || !(error instanceof InterruptedError) ? 'drop' : 'learn'
    const store = () => this.#end(incomplete, left)
    return endedEarly(error, dir, () => this.#job.trainer.report(), store, left !== undefined)
  }

  /** Where the same command continues; undefined if it cannot. */
  get #unfinished(): UnfinishedRun | undefined {
    const { isContinuable, stream } = this.#setup
    return isContinuable && stream.isReplayable ? this.#continuation.state : undefined
  }

  #stateOf(unfinished: UnfinishedRun | undefined): StreamState {
    const { scaling, validation } = this.#setup
    const moments =
      this.#job.spec.features.scale === 'standard' ? (validation?.moments ?? scaling.moments.save()) : undefined
    return { moments, unfinished }
  }

  #show(id: object): void {
    const { earlier, flags, notices, resume, stream, validation } = this.#setup
    const { spec, uselessLoss } = this.#job
    if (uselessLoss !== undefined) notices.add(uselessLoss, importance.useless)
    notices.show()
    const cost = {
      seconds: (performance.now() - this.#start) / 1000,
      skipped: stream.skipped,
      data: stream.summary,
      notices: notices.lines,
      firstPass: this.#firstPass,
      // A run that continues within its data has scored no row twice.
      continues: resume === undefined ? earlier?.progress.inputs : undefined,
      validation: validation?.report
    }
    // A network with frozen layers or adapters lacks them in its directory.
    const weights = spec.network?.tuning && flags.givenWeights
    showTrained({ ...flags, weights }, this.#job, cost, id)
  }
}

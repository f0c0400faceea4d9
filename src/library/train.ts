/** Training in this process, from a file or from arrays: `admb train` for programs. */
import { importance, Notices } from '../base/errors.js'
import { createParser, openStream, Preparation, type Rows, RunningMoments, type Scaling } from '../data/index.js'
import {
  type BaselineFigures,
  type Blocks,
  checkOptions,
  type Learner,
  learnerAfter,
  type Metrics,
  OptionError,
  type OptionsOf,
  type PredictWith,
  type Rest,
  type SerialReport,
  optionTypes as types
} from '../learning/index.js'
import { type LearningSpec, learningParts, scoringExecution } from '../peer/index.js'
import { classNamesOf } from '../task/learning-parts.js'
import { executionType, type TaskOptions, taskTypes } from '../task/options.js'
import { optionsOf } from '../task/stream.js'
import { closed, createTask, factsOf, factsOfLabels } from '../task/task.js'
import { TrainingJob } from '../task/training-job.js'
import type { Answer } from './create-peer.js'
import { encodeInputs, type Features, type Label } from './inputs.js'

const ownTypes = {
  /** Instead of `data`. @default none */
  inputs: types.typed<readonly Features[]>(types.list),
  /** One for each of `inputs`. @default none */
  labels: types.typed<readonly Label[]>(types.list),
  /** Importance of each of `inputs`, at least 0. @default 1 for all */
  weights: types.numbers,
  /** The parameters that score inputs before they are learned, and that predict afterwards. @default 'average' */
  predictWith: types.typed<PredictWith>(types.text),
  /** How a network is executed. @default one minibatch at a time on the first device that works */
  execution: executionType
}

/** Options of `train`: the task, and `data` or `inputs` with `labels`. */
export interface TrainOptions extends TaskOptions, OptionsOf<typeof ownTypes> {}

const trainType = types.options<TrainOptions>({ ...taskTypes, ...ownTypes })

/** Results of training. */
export interface TrainReport extends SerialReport {
  /** Malformed inputs that were skipped. `data: { …, strict: true }` throws instead. */
  readonly skipped: number
  /** What was guessed of the data and could be wrong, or left out: at most five lines, most important first. */
  readonly notices: readonly string[]
  /** What predictions that learn nothing from features reach. */
  readonly baseline?: BaselineFigures
  /** Figures since the start and over the last inputs. */
  readonly metrics?: Metrics
}

/**
 * Trains on a stream to its end.
 * @example
 * const trained = await train({ inputs: [[0, 1], [1, 0]], labels: ['no', 'yes'], classNames: ['no', 'yes'] })
 * trained.report.averageLoss
 * trained.predict([1, 0]).label
 * @example
 * // 100 MB of the weights and the optimizer state are in memory, and the others on the disk.
 * const execution = { store: 'disk', hostMemory: 1e8 } as const
 * const large = await train({ data: 'book.txt', model: 'gpt', rule: { name: 'adam' }, execution })
 * @throws OptionError, ModelError, PluginError, RequestError for arrays that do not fit; errors of the stream and the device, as an
 *   EndedEarlyError if something was learned before
 */
export async function train(options: TrainOptions): Promise<TrainedModel> {
  checkOptions('the options of train', trainType, options)
  const { inputs, labels, weights, checkpoint, predictWith = 'average' } = options
  const execution = { ...options.execution, checkpoint }
  if ((inputs === undefined) === (options.data === undefined)) {
    throw new OptionError('give either data, or inputs with their labels')
  }
  const notices = new Notices(line => notices.add(line, importance.leftOut))
  const task = { features: featuresOf(inputs, options), ...options }
  const { stream, specFor } = await createTask(task, 'serial')
  const spec = specFor(inputs === undefined ? await factsOf(stream, notices.add) : factsOfLabels(task, labels ?? []))
  const scaling = { moments: new RunningMoments(), frozen: false }
  const job = await TrainingJob.start({ spec, execution, predictWith })
  const opened = stream && (await openStream({ ...stream, scaling, onNotice: notices.add }))
  const end = async (rest: Rest) => {
    const { parameters, average, updates, dimension } = job.trainer.finish(rest)
    job.network.layers?.close(undefined)
    const known = job.specOf(dimension, opened)
    if (job.uselessLoss) notices.add(job.uselessLoss, importance.useless)
    const report = { ...job.report(), skipped: opened?.skipped ?? 0, notices: notices.lines }
    const { learner } = await learningParts(known, scoringExecution(execution))
    const serving = predictWith === 'average' ? average : parameters
    const preparation = preparationFor(known, { ...scaling, frozen: true })
    return new TrainedModel(known, learnerAfter(learner, updates), serving, report, preparation)
  }
  try {
    if (inputs !== undefined) {
      const rows = weighed(parse(closed(spec), encodeInputs(inputs, labels ?? []), false), weights)
      job.learn(preparationFor(closed(spec), scaling)?.scaled(rows) ?? rows)
    }
    for await (const rows of opened ?? []) job.learn(job.numbered(rows))
  } catch (error) {
    if (job.trainer.report().updates === 0) throw error
    throw await end('drop').then(
      trained => new EndedEarlyError(error as Error, trained),
      () => error
    )
  }
  return end('learn')
}

/** `train` ended early. Name, code and message are those of the `cause`. */
export class EndedEarlyError extends Error {
  override readonly name: string
  readonly code: string | undefined
  constructor(
    cause: Error & { readonly code?: string },
    /** The model trained until then. */
    readonly trained: TrainedModel
  ) {
    super(cause.message, { cause })
    this.name = cause.name
    this.code = cause.code
  }
}

/** A trained model with its report. */
export class TrainedModel {
  readonly #learner: Learner
  readonly #preparation: Preparation | undefined

  /** @internal Use `train`. */
  constructor(
    readonly spec: LearningSpec,
    learner: Learner,
    /** The parameters that predict. */
    readonly parameters: Blocks,
    /** Progressive: each input was scored before it was learned. */
    readonly report: TrainReport,
    preparation: Preparation | undefined
  ) {
    this.#learner = learner
    this.#preparation = preparation
  }

  /** @throws RequestError, MalformedInputError for an input that does not fit the model */
  predict(input: Features): Answer {
    return this.predictAll([input])[0]
  }

  predictAll(inputs: readonly Features[]): readonly Answer[] {
    const parsed = parse(this.spec, encodeInputs(inputs, undefined), true)
    const rows = this.#preparation?.scaled(parsed, true) ?? parsed
    const names = classNamesOf(this.spec, this.parameters)
    return this.#learner.predict(this.parameters, rows, 0, inputs.length).map(({ label, scores }) => {
      const name = this.#learner.classifies ? names?.[label] : undefined
      return { label: name ?? label, scores }
    })
  }
}

/** The number of features of the first input. */
function featuresOf(inputs: readonly Features[] | undefined, { hashBits }: TaskOptions): number | undefined {
  const first = inputs?.[0]
  if (first === undefined || hashBits !== undefined) return undefined
  return Array.isArray(first) || ArrayBuffer.isView(first) ? (first as ArrayLike<number>).length : undefined
}

function preparationFor({ features }: LearningSpec, scaling: Scaling): Preparation | undefined {
  const { columns: schema, hashBits, constant, scale } = features
  return Preparation.for({ schema, hashBits, constant, scale }, scaling)
}

function weighed(rows: Rows, weights: readonly number[] | undefined): Rows {
  if (weights === undefined) return rows
  if (weights.length === rows.size && weights.every(weight => weight >= 0 && Number.isFinite(Math.fround(weight)))) {
    return { ...rows, weights: Float32Array.from(weights) }
  }
  throw new OptionError(`weights: give a number of at least 0 for each of ${rows.size} inputs`)
}

function parse(spec: LearningSpec, lines: Uint8Array, unlabelled: boolean): Rows {
  return createParser('jsonl', { ...optionsOf(spec, 'jsonl'), source: 'inputs', strict: true, unlabelled }).push(lines)
}

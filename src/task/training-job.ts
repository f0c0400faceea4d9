/** Training in this process, whatever the model. */
import type { Recipe } from '../admb/index.js'
import { NEW_CLASS, type Rows } from '../data/index.js'
import type { Execution, ExecutionReport, Hosts, LayerPlace, Plan } from '../l2l/index.js'
import {
  type Baseline,
  type BaselineFigures,
  BatchEngine,
  baselineFor,
  checkFeatures,
  createAveraging,
  createRule,
  type Examples,
  hasPlainLoss,
  isBlockwise,
  isCustomName,
  type Learner,
  type Metrics,
  OptionError,
  type PredictWith,
  type SerialReport,
  SerialTrainer,
  type Trained,
  uselessLoss
} from '../learning/index.js'
import { classTableOf, linearParts } from './learning-parts.js'
import { type CustomLossSpec, growingNames, type LearningSpec, type LinearSpec } from './learning-spec.js'
import type { OpenLearningSpec, StreamFacts } from './spec.js'
import { closed } from './task.js'

export interface TrainingSettings {
  /** Built-in linear models grow with their data and may leave the dimension open. */
  readonly spec: OpenLearningSpec
  readonly execution: Execution
  /** @default 'average' */
  readonly predictWith?: PredictWith
  /** What the job continues. */
  readonly earlier?: Trained
  /** The layer file of `store: 'disk'`. @default in a temporary folder */
  readonly place?: LayerPlace
  /** Waits for the hosts among which a network is divided. @default none */
  readonly hosts?: () => Promise<Hosts>
}

/** How a network is executed; without fields for a linear model. */
interface NetworkRun {
  /** Cost so far. */
  report?(): ExecutionReport
  /** The planner's expectation, if it was asked. */
  readonly plan?: Plan
  /** The device, and why it was chosen. */
  readonly device?: string
  /** The layer file of a run with `store: 'disk'`. */
  readonly layers?: TrainedLayers
  /** Releases the hosts, whose arrays are read until then. */
  close?(): void
}

/** Commits what was learned to a layer file. */
export interface TrainedLayers {
  /** @param content state of the run, as JSON */
  commit(content: unknown): void
  /** The last commit, after `finish`; durable when this returns. */
  close(content: unknown): void
  /** Ends without another commit, after an error. */
  abandon(): void
}

/** What learns in this process: rows in, a trained model and its figures out. The command line and the library run the same job. */
export class TrainingJob {
  readonly spec: OpenLearningSpec
  /** The names of all classes, to which new ones are appended; undefined if the model has no room for more. */
  readonly names: string[] | undefined
  /** Names for which there was no room. */
  readonly refused = new Set<string>()
  readonly #earlier: Trained | undefined
  readonly #baseline: Baseline | undefined

  private constructor(
    { spec, earlier }: TrainingSettings,
    readonly trainer: SerialTrainer,
    readonly network: NetworkRun
  ) {
    this.spec = spec
    this.#earlier = earlier
    const table = classTableOf(spec)
    this.names = table && (earlier ? table.namesIn(earlier.parameters) : [...table.named])
    this.#baseline = baselineFor(spec, trainer.classifies)
    if (earlier) trainer.resume(earlier)
  }

  /** @throws OptionError; ModelError, DeviceError for a network */
  static async start(settings: TrainingSettings): Promise<TrainingJob> {
    const { trainer, ...network } = await trainerFor(settings)
    return new TrainingJob(settings, trainer, network)
  }

  /** The rows with class numbers for labels whose names are new. The label is NaN if there is no room. */
  numbered(rows: Rows): Rows {
    const { newClasses, labels, size } = rows
    if (newClasses === undefined || !labels.subarray(0, size).some(label => label >= NEW_CLASS)) return rows
    const found = labels.slice(0, size).map(label => {
      return label >= NEW_CLASS ? this.#numberOf(newClasses[label - NEW_CLASS]) : label
    })
    return { ...rows, labels: found }
  }

  #numberOf(name: string): number {
    const known = this.names?.indexOf(name) ?? -1
    if (known >= 0) return known
    const number = this.trainer.addClass(name)
    if (number === undefined) {
      this.refused.add(name)
      return Number.NaN
    }
    this.names?.push(name)
    return number
  }

  /** Learns rows that have their numbers. */
  learn(rows: Examples): void {
    this.#baseline?.add(rows)
    this.trainer.learn(rows)
  }

  /** The spec of the model so far. @param facts of the stream that was read */
  specOf(dimension: number, facts?: StreamFacts): LearningSpec {
    return this.#earlier ? (this.spec as LearningSpec) : closed(this.spec, dimension, facts)
  }

  /** Figures of the inputs so far, which were scored before they were learned. */
  report(): SerialReport & { readonly baseline?: BaselineFigures; readonly metrics?: Metrics } {
    return { ...this.trainer.report(), baseline: this.#baseline?.figures, metrics: this.trainer.metrics() }
  }

  /** What to say of a loss that a constant prediction has as well; undefined for others. */
  get uselessLoss(): string | undefined {
    const { inputs, averageLoss, baseline, metrics } = this.report()
    const recent = metrics?.recent.find(({ window }) => window <= inputs)?.loss ?? averageLoss
    const lower = averageLoss === undefined ? undefined : Math.min(averageLoss, recent ?? averageLoss)
    return hasPlainLoss(this.spec) ? uselessLoss(inputs, lower, baseline) : undefined
  }
}

async function trainerFor({
  spec,
  execution,
  predictWith = 'average',
  earlier,
  place,
  hosts: join
}: TrainingSettings): Promise<NetworkRun & { readonly trainer: SerialTrainer }> {
  const { rule, averaging, batch } = spec
  const isOnDisk = execution.store === 'disk'
  const hostMemory = execution.hostMemory !== undefined
  checkFeatures({
    network: spec.model === 'network',
    layersOnDisk: isOnDisk,
    hostMemory,
    partition: join !== undefined
  })
  if (spec.model === 'external')
    throw new OptionError('the model of a program is trained by peers: start admb peer --learner external')
  if (spec.model !== 'network') {
    const { model, classes, classWeights, dimension, l2 } = spec
    if (!isCustomName(model)) {
      const targetScale = 'targetScale' in spec ? spec.targetScale : undefined
      const room = { model, classes, classWeights, named: growingNames(spec), dimension }
      // A rule of a specification is complete: an option that it lacks is off.
      const complete = rule.name === 'adagrad' ? { maxForget: 0, ...rule } : rule
      const given = { ...room, rule: complete, averaging, batch, l2, targetScale, predictWith }
      return { trainer: new SerialTrainer(given) }
    }
    const known = closed(spec) as LinearSpec | CustomLossSpec
    return { trainer: plainTrainer(linearParts(known, false), known, predictWith) }
  }
  const {
    deviceFor,
    diskOptions,
    frozenOf,
    initialOf,
    networkLearner,
    networkModel,
    resolveExecution,
    serverThreadsOf,
    L2LEngine
  } = await import('../l2l/index.js')
  const { reason: device } = await deviceFor(execution)
  if (isBlockwise(rule)) {
    const model = networkModel(spec.network)
    const { executorOptions, plan } = resolveExecution(model, execution, batch)
    const { workers, backend, checkpoint } = execution
    const initial = earlier ? undefined : initialOf(spec.network, model, checkpoint)?.()
    const frozen = frozenOf(spec.network, model, checkpoint)
    const server = { model, rule, averaging, threads: serverThreadsOf(executorOptions) }
    const disk = isOnDisk ? diskOptions(server, execution, place) : undefined
    const hosts = await join?.()
    const engine = new L2LEngine({
      ...executorOptions,
      frozen,
      classWeights: spec.classWeights,
      model,
      rule,
      averaging,
      batch,
      predictWith,
      workers,
      initial,
      disk,
      hosts
    })
    await engine.startWorkers(spec.network, backend)
    const trainer = new SerialTrainer({ engine, classifies: model.head.classifies })
    const close = hosts && (() => engine.abandon())
    return { trainer, report: () => engine.report(), plan, device, layers: disk && engine, close }
  }
  if (isOnDisk || join !== undefined) {
    throw new OptionError(
      `${isOnDisk ? '--store disk' : 'zero'} needs a rule that steps layers independently, which ${createRule(rule).name} with these options does not: remove radius, clip or maxLossDecrease`
    )
  }
  // A rule that looks at all layers at once waits for the last gradient.
  const { tuning } = spec.network
  const start = earlier && tuning === undefined ? { ...spec.network, weights: undefined } : spec.network
  const learner = await networkLearner(start, batch, execution, spec.classWeights)
  const recipe = { rule: createRule(rule, learner.layout), averaging: createAveraging(averaging) }
  return { trainer: plainTrainer({ learner, recipe }, closed(spec), predictWith), device }
}

/** Any learner, one batch after another. */
function plainTrainer(
  { learner, recipe }: { readonly learner: Learner; readonly recipe: Pick<Recipe, 'rule' | 'averaging'> },
  { dimension, batch }: LearningSpec,
  predictWith: PredictWith
): SerialTrainer {
  const engine = new BatchEngine({
    learnerFor: () => learner,
    dimension,
    dimensionLimit: dimension,
    rule: recipe.rule,
    averaging: recipe.averaging,
    batch,
    predictWith
  })
  return new SerialTrainer({ engine, classifies: learner.classifies })
}

/** A serial trainer for a task: what learns in this process, whatever the model. */
import type { Recipe } from '../admb/index.js'
import type { Execution, ExecutionReport, Plan } from '../l2l/index.js'
import {
  BatchEngine,
  createAveraging,
  createRule,
  isBlockwise,
  isCustomName,
  type Learner,
  type PredictWith,
  SerialTrainer
} from '../learner/index.js'
import { growingNames, type LearningSpec, linearParts } from './learning-spec.js'
import type { OpenLearningSpec } from './spec.js'
import { closed } from './task.js'

export interface RunningTrainer {
  readonly trainer: SerialTrainer
  /** Cost of the network's execution so far; undefined for a linear model. */
  report?(): ExecutionReport
  /** The planner's expectation, if it was asked. */
  readonly plan?: Plan
  /** The device that executes a network, and why it was chosen. */
  readonly device?: string
}

/**
 * @param continues whether the weights will be those of an earlier run
 * @param spec built-in linear models grow with their data and may leave the dimension open
 * @throws OptionError; ModelError, DeviceError for a network
 */
export async function trainerFor(
  spec: OpenLearningSpec,
  execution: Execution,
  predictWith: PredictWith = 'average',
  continues = false
): Promise<RunningTrainer> {
  const { rule, averaging, batch } = spec
  if (spec.model !== 'network') {
    const { model, classes, classWeights, dimension, l2, onDrift } = spec
    if (!isCustomName(model)) {
      const targetScale = 'targetScale' in spec ? spec.targetScale : undefined
      const room = { model, classes, classWeights, named: growingNames(spec), dimension }
      const given = { ...room, rule, averaging, batch, l2, targetScale, predictWith, onDrift }
      return { trainer: watching(new SerialTrainer(given), spec) }
    }
    const known = closed(spec) as Exclude<LearningSpec, { readonly model: 'network' }>
    return { trainer: watching(plainTrainer(linearParts(known, false), known, predictWith), spec) }
  }
  const { deviceFor, frozenOf, initialOf, networkLearner, networkModel, resolveExecution, L2LEngine } = await import(
    '../l2l/index.js'
  )
  const { reason: device } = await deviceFor(execution)
  if (isBlockwise(rule)) {
    const model = networkModel(spec.network)
    const { executorOptions, plan } = resolveExecution(model, execution, batch)
    const { workers, backend, checkpoint } = execution
    const initial = continues ? undefined : initialOf(spec.network, model, checkpoint)?.()
    const frozen = frozenOf(spec.network, model, checkpoint)
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
      initial
    })
    await engine.startWorkers(spec.network, backend)
    const trainer = new SerialTrainer({ engine, classifies: model.head.classifies })
    return { trainer, report: () => engine.report(), plan, device }
  }
  // A rule that looks at all layers at once waits for the last gradient.
  const { tuning } = spec.network
  const start = continues && tuning === undefined ? { ...spec.network, weights: undefined } : spec.network
  const learner = await networkLearner(start, batch, execution, spec.classWeights)
  const recipe = { rule: createRule(rule, learner.layout), averaging: createAveraging(averaging) }
  return { trainer: plainTrainer({ learner, recipe }, closed(spec), predictWith), device }
}

/** The reaction to drift requires a drift test. */
function watching(trainer: SerialTrainer, { onDrift }: OpenLearningSpec): SerialTrainer {
  if (onDrift !== undefined) trainer.watchDrift('adwin')
  return trainer
}

/** Any learner, one batch after another. */
function plainTrainer(
  { learner, recipe }: { readonly learner: Learner; readonly recipe: Pick<Recipe, 'rule' | 'averaging'> },
  { dimension, batch, onDrift }: LearningSpec,
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
  return new SerialTrainer({ engine, classifies: learner.classifies, reacts: onDrift !== undefined })
}

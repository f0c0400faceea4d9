/** What learns in this process: a serial trainer for a linear model or for a network. */

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
import { type LearningSpec, linearParts } from '../peer/index.js'

export interface RunningTrainer {
  readonly trainer: SerialTrainer
  /** What the network's execution cost so far; undefined for a linear model. */
  report?(): ExecutionReport
  /** What the planner expected, where it was asked. */
  readonly plan?: Plan
  /** The device that executes a network, and why that one. */
  readonly device?: string
}

/** @throws OptionError; ModelError, DeviceError for a network */
export async function trainerFor(
  spec: LearningSpec,
  execution: Execution,
  predictWith: PredictWith = 'average'
): Promise<RunningTrainer> {
  const { rule, averaging, batch, dimension } = spec
  if (spec.model !== 'network') {
    const { model, classes, l2 } = spec
    if (isCustomName(model)) return { trainer: plainTrainer(linearParts(spec).learner, spec, predictWith) }
    return { trainer: new SerialTrainer({ model, classes, dimension, rule, averaging, batch, l2, predictWith }) }
  }
  const { deviceFor, networkLearner, networkModel, planned, L2LEngine } = await import('../l2l/index.js')
  const { why: device } = await deviceFor(execution)
  if (isBlockwise(rule)) {
    const model = networkModel(spec.network)
    const { relay, plan } = planned(model, execution, batch)
    const { workers, backend } = execution
    const engine = new L2LEngine({ ...relay, model, rule, averaging, batch, predictWith, workers })
    await engine.share(spec.network, backend)
    const trainer = new SerialTrainer({ engine, classifies: model.head.classifies })
    return { trainer, report: () => engine.report(), plan, device }
  }
  // Rules that look at all layers at once wait for the last gradient.
  const learner = await networkLearner(spec.network, batch, execution)
  return { trainer: plainTrainer(learner, spec, predictWith), device }
}

/** Any learner, one batch after another. */
function plainTrainer(
  learner: Learner,
  { dimension, rule, averaging, batch }: LearningSpec,
  predictWith: PredictWith
): SerialTrainer {
  const engine = new BatchEngine({
    learnerFor: () => learner,
    dimension,
    dimensionLimit: dimension,
    rule: createRule(rule),
    averaging: createAveraging(averaging),
    batch,
    predictWith
  })
  return new SerialTrainer({ engine, classifies: learner.classifies })
}

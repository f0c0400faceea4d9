/** The predictor of a command: of a state directory, or the weights of a checkpoint. */
import { RunningMoments } from '../../data/index.js'
import { type Blocks, digest, learnerAfter } from '../../learning/index.js'
import { ownCheckpoint } from '../../task/checkpoint.js'
import { learningParts, scoringExecution } from '../../task/learning-parts.js'
import { closed, createTask, factsOf } from '../../task/task.js'
import { UsageError } from '../errors.js'
import { linearFrom } from '../linear/formats.js'
import { executionOf, taskOptions } from '../options/settings.js'
import type { Flags } from '../options/table.js'
import { showCoverage } from '../output/output.js'
import { loadStored, type Stored } from './stored.js'

/**
 * @param needsLabels whether texts must have labels
 * @throws UsageError unless a directory or a checkpoint is given; errors of the store, ModelError
 */
export async function loadPredictor(flags: Flags<'eval' | 'predict'>, needsLabels: boolean): Promise<Stored> {
  if (flags.weights === undefined || flags.dir !== undefined) {
    if (flags.length !== undefined || flags.tokenizer !== undefined) {
      throw new UsageError('a stored predictor has its --length and its --tokenizer: remove them')
    }
    return loadStored(flags.dir, scoringExecution(executionOf(flags)))
  }
  const stored = await fromFile(flags.weights, flags)
  if (stored) return stored
  const options = taskOptions(flags)
  const task = await createTask(options, 'serial', needsLabels)
  const spec = closed(task.specFor(await factsOf(task.stream)))
  const execution = scoringExecution(executionOf(flags))
  const { learner } = await learningParts(spec, execution)
  const { checkpointBlocks } = await import('../../l2l/index.js')
  const parameters = (spec.network && checkpointBlocks(spec.network, execution.checkpoint)) ?? learner.initial()
  // Reads the blocks, and fails if one of them does not fit.
  const content = digest([parameters])
  showCoverage(task.coverage)
  const id = { updates: 0, origin: 'weights', incarnation: 0, nonce: 0, digest: content }
  const scaling = { moments: new RunningMoments(), frozen: true }
  return { spec, learner, predictor: { id, parameters, average: parameters, state: [] }, scaling }
}

/** The predictor of a file that names its inputs: of a linear model, or of a network that was not given another text. */
async function fromFile(weights: string, flags: Flags<'eval' | 'predict'>): Promise<Stored | undefined> {
  const linear = linearFrom(weights, taskOptions(flags))
  if (linear || flags.length !== undefined || flags.tokenizer !== undefined) return linear
  const { openCheckpoint } = await import('../../nn/weights/checkpoint.js')
  const own = ownCheckpoint(openCheckpoint(weights))
  if (own?.spec.network === undefined) return undefined
  const { spec, moments = [] } = own
  const execution = scoringExecution(executionOf({ ...flags, weights: undefined }))
  const { learner } = await learningParts(spec, execution)
  const { checkpointBlocks } = await import('../../l2l/index.js')
  const parameters = checkpointBlocks({ ...own.spec.network, weights: weights }, weights) as Blocks
  const id = own.id ?? { updates: 0, origin: 'weights', incarnation: 0, nonce: 0, digest: digest([parameters]) }
  const predictor = { id, parameters, average: parameters, state: [] }
  const scaling = { moments: RunningMoments.restore(moments), frozen: true }
  return { spec, learner: learnerAfter(learner, id.updates), predictor, scaling }
}

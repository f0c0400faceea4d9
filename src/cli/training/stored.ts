/** Loads a stored predictor with its model. */
import { type Predictor, PredictorAssembler, replaySteps, shapesOf } from '../../admb/index.js'
import { LagHistory, RunningMoments, type Scaling } from '../../data/index.js'
import type { Execution } from '../../l2l/index.js'
import { type Blocks, type Learner, learnerAfter } from '../../learning/index.js'
import type { SavedProgress } from '../../peer/thread-messages.js'
import { type Checkpoint, DamagedStateError, type Store } from '../../storage/index.js'
import { classNamesOf, type LearningSpec, learningParts, parseSpec } from '../../task/learning-spec.js'
import { predictorMetadata } from '../../task/predictor-metadata.js'
import { UsageError } from '../errors.js'
import { layeredPredictor, openLayered } from './layered.js'
import { readingState } from './readable-state.js'

export interface Stored {
  readonly spec: LearningSpec
  /** For this predictor. */
  readonly learner: Learner
  readonly predictor: Predictor
  /** What its inputs are scaled by, and the rows before them. */
  readonly scaling: Scaling
}

/**
 * @param execution how a network is executed; without it, only the learner's layout can be used
 * @throws DamagedStateError
 */
export async function readPredictor(
  store: Store,
  dir: string,
  spec: LearningSpec,
  { head, blocks, steps }: Checkpoint,
  execution?: Execution
): Promise<{ readonly learner: Learner; readonly predictor: Predictor }> {
  const { learner, recipe } = await learningParts(spec, execution)
  const shapes = shapesOf(learner.layout, recipe)
  try {
    const assembler = new PredictorAssembler(head, blocks, shapes)
    for (let index = 0; index < blocks; index++) assembler.add(await store.block(index))
    let saved = assembler.finish(recipe.digest)
    for (let index = 0; index < steps; index++) saved = replaySteps(saved, await store.steps(index), shapes, recipe)
    const { id, parameters, average, state } = saved.predictor
    const read = recipe.averaging.read?.(average, parameters) ?? average
    return { learner, predictor: { id, parameters, average: read, state } }
  } catch (error) {
    throw new DamagedStateError(dir, (error as Error).message)
  }
}

/**
 * @param execution how a network is executed; without it, only the learner's layout can be used
 * @throws UsageError if the directory holds no predictor yet; errors of the store
 */
export async function loadStored(dir: string | undefined, execution: Execution | undefined): Promise<Stored> {
  if (dir === undefined) throw new UsageError('no predictor: give --dir DIR of a trained model or of a stopped peer')
  return readingState(dir, async store => {
    const text = await store.model()
    const checkpoint = await store.checkpoint()
    const layers = text === undefined ? undefined : await openLayered(dir, parseSpec(text), execution)
    const progress = (layers ?? checkpoint)?.progress as SavedProgress | undefined
    if (text === undefined || progress === undefined) {
      throw new UsageError(`${dir} holds no predictor yet: train one with admb train --dir ${dir} --data FILE`)
    }
    const spec = parseSpec(text)
    if (execution?.checkpoint !== undefined && spec.network?.tuning === undefined) {
      throw new UsageError(`${dir} holds all weights of its model: give either --dir or --weights`)
    }
    const { moments = [], history } = progress
    const state = { moments: RunningMoments.restore(moments), history: LagHistory.restore(history) }
    const { learner, predictor } =
      layers === undefined
        ? await readPredictor(store, dir, spec, checkpoint as Checkpoint, execution)
        : { learner: layers.learner, predictor: layeredPredictor(layers) }
    return {
      spec,
      learner: learnerAfter(learner, predictor.id.updates),
      predictor,
      scaling: { ...state, frozen: true }
    }
  })
}

/** What a file of the predictor says besides its weights. @param blocks of them that are served */
export function metadataOf(
  { spec, predictor, scaling }: Stored,
  blocks: Blocks,
  serving: 'average' | 'current'
): Record<string, string> {
  const moments = spec.features.scale === 'standard' ? scaling.moments.save() : undefined
  return {
    predictor: JSON.stringify(predictor.id),
    serving,
    ...predictorMetadata(spec, moments, classNamesOf(spec, blocks))
  }
}

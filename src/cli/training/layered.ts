/** Predictors of `admb train --store disk`, whose blocks are in a layer file, and read one at a time. */
import type { Predictor, PredictorId } from '../../admb/index.js'
import type { Execution, LayerPlace } from '../../l2l/index.js'
import { type Learner, stateBlockIndices, type Trained } from '../../learning/index.js'
import type { SavedProgress } from '../../peer/thread-messages.js'
import { layersFolder } from '../../storage/index.js'
import { learningParts } from '../../task/learning-parts.js'
import type { LearningSpec } from '../../task/learning-spec.js'

/** What a commit stores besides the blocks. */
export interface LayeredContent extends Pick<PredictorId, 'updates' | 'origin' | 'incarnation' | 'nonce'> {
  readonly dimension: number
  readonly progress: SavedProgress
  /** Digest of the predictor, once the run has ended. */
  readonly digest?: string
}

/** A predictor whose blocks are read when they are accessed. */
export interface Layered {
  readonly spec: LearningSpec
  readonly learner: Learner
  readonly trained: Trained
  readonly progress: SavedProgress
  readonly place: LayerPlace
  /** Reads all blocks, unless the run has ended. */
  id(): PredictorId
}

/**
 * The predictor in the layer file of a state directory; undefined if there is none.
 * @param execution how the network is executed; without it, only the learner's layout can be used
 * @throws DamagedLayersError
 */
export async function openLayered(
  dir: string,
  spec: LearningSpec,
  execution?: Execution
): Promise<Layered | undefined> {
  if (spec.network === undefined) return undefined
  const { LayerReader, storedBlocks, storedLayers } = await import('../../l2l/index.js')
  const place = storedLayers(layersFolder(dir))
  if (place === undefined) return undefined
  const { learner, recipe } = await learningParts(spec, execution)
  const reader = new LayerReader(place.folder, place.commit)
  const positions = stateBlockIndices(recipe.rule, learner.layout)
  const { parameters, average, state } = storedBlocks(reader, spec.averaging.name !== 'none', positions)
  const { updates, origin, incarnation, nonce, digest, dimension, progress } = place.commit.content as LayeredContent
  const trained: Trained = { dimension, parameters, average, state, updates }
  const id = () => ({
    updates,
    origin,
    incarnation,
    nonce,
    digest: digest ?? recipe.digest([parameters, average, state])
  })
  return { spec, learner, trained, progress, place, id }
}

/** As a predictor. */
export function layeredPredictor({ trained, id }: Layered): Predictor {
  const { parameters, average, state } = trained
  return { id: id(), parameters, average, state }
}

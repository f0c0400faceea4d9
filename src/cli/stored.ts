/** A stored predictor with its model, for the commands that only read one. */
import { decodeSaved, type Predictor } from '../admb/index.js'
import { digest, type Learner } from '../learner/index.js'
import { type LearningSpec, learningParts, parseSpec } from '../peer/agreement.js'
import { DamagedStateError, Store } from '../storage/index.js'
import { UsageError } from './errors.js'

export interface Stored {
  readonly spec: LearningSpec
  readonly learner: Learner
  readonly predictor: Predictor
}

/** @throws UsageError if the directory holds no predictor yet; errors of the store */
export async function loadStored(dir: string | undefined): Promise<Stored> {
  if (dir === undefined) throw new UsageError('no predictor: give --dir DIR of a trained model or of a stopped peer')
  const store = await Store.openExisting(dir)
  try {
    const text = await store.model()
    const checkpoint = await store.checkpoint()
    if (text === undefined || checkpoint === undefined) {
      throw new UsageError(`${dir} holds no predictor yet: train one with admb train --dir ${dir} --data FILE`)
    }
    const spec = parseSpec(text)
    const { learner, recipe } = learningParts(spec)
    const shapes = { parameters: learner.layout, state: recipe.rule.stateLayout(learner.layout) }
    try {
      return { spec, learner, predictor: decodeSaved(checkpoint.predictor, shapes, undefined, digest).predictor }
    } catch (error) {
      throw new DamagedStateError(dir, (error as Error).message)
    }
  } finally {
    await store.close()
  }
}

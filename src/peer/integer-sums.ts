/**
 * Conversion of a state directory between float32 and integer sums. The predictors differ in the estimates of the grid only, which the
 * digest leaves out while they are unknown. So ids, signed headers, coverages and the journal stay valid.
 */

import { readStored } from '../admb/core/node-storage.js'
import { encodeSavedBlocks, shapesOf } from '../admb/index.js'
import { ContributorTable } from '../admb/state/coverage.js'
import { FRAME_LIMITS, lineageLength } from '../admb/wire/frame.js'
import { type Blocks, OptionError, withEstimates } from '../learning/index.js'
import { type Checkpoint, DamagedStateError, type Store } from '../storage/index.js'
import { learningParts } from '../task/learning-parts.js'
import type { LearningSpec } from '../task/learning-spec.js'
import { parseSpec, specText } from '../task/spec-text.js'
import { storedPredictor } from './startup.js'

/**
 * Converts the state of a directory to the sums of a spec, in one write.
 * @returns whether it had other sums; a directory that differs in more is left to the check of its model
 * @throws OptionError if the grid has been estimated, and exact sums are wanted; DamagedStateError
 */
export async function convertSums(store: Store, dir: string, spec: LearningSpec): Promise<boolean> {
  const text = await store.model()
  if (text === undefined) return false
  const stored = parseSpec(text)
  const wanted = specText(spec)
  // The moments by which a trained model scaled its inputs become constants of its schema.
  const { columns, scale } = spec.features
  const features = stored.features.scale === 'standard' ? { ...stored.features, columns, scale } : stored.features
  if (text === wanted || specText({ ...stored, sums: spec.sums, features } as LearningSpec) !== wanted) return false
  const checkpoint = stored.sums === spec.sums ? undefined : await store.checkpoint()
  await store.convert(wanted, checkpoint && (await converted(store, dir, checkpoint, stored, spec)))
  return stored.sums !== spec.sums
}

async function converted(store: Store, dir: string, checkpoint: Checkpoint, from: LearningSpec, to: LearningSpec) {
  const { learner, recipe } = await learningParts(from)
  const { recipe: next } = await learningParts(to)
  const table = new ContributorTable()
  const saved = await storedPredictor(store, checkpoint)
  const { predictor, lineage, attestation, claims } = read(dir, () =>
    readStored(saved, shapesOf(learner.layout, recipe), recipe, table)
  )
  const { id, parameters, average } = predictor
  const state: Blocks =
    to.sums === 'lattice'
      ? withEstimates(predictor.state, shapesOf(learner.layout, next).state)
      : predictor.state.slice(0, -1)
  if (next.digest([parameters, average, state]) !== id.digest) {
    throw new OptionError(`${dir} has learned with integer sums, which cannot be undone: remove --sums exact`)
  }
  // The peer verifies them when it restores the predictor.
  for (const [contributor, certificate] of claims ?? []) table.certify(contributor, certificate)
  const headers = lineage.slice(0, FRAME_LIMITS.headers)
  const kept = { lineage: headers.slice(0, lineageLength(headers)), attestation }
  const { head, blocks } = encodeSavedBlocks({ predictor: { id, parameters, average, state }, ...kept }, table)
  return { head, blocks, progress: checkpoint.progress }
}

function read<T>(dir: string, reading: () => T): T {
  try {
    return reading()
  } catch (error) {
    throw new DamagedStateError(dir, (error as Error).message)
  }
}

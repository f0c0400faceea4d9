/** Stores the predictor of a training run in a state directory, from which peers and other commands continue. */

import { ContributorTable } from '../../admb/contributors.js'
import { encodeSavedBlocks } from '../../admb/index.js'
import { isFinite32 } from '../../admb/vectors.js'
import { DivergenceError, digest, type SerialReport, type Trained } from '../../learner/index.js'
import { decodeIdentityKey, encodeIdentityKey, generateIdentityKey, peerIdOf } from '../../network/keys.js'
import type { SavedProgress } from '../../peer/thread-messages.js'
import { Store } from '../../storage/index.js'
import type { SavedMoments } from '../../streams/index.js'
import { type LearningSpec, specText } from '../../task/learning-spec.js'
import { InterruptedError, isBug, UsageError } from '../errors.js'
import { formatNumber } from '../output/output.js'

/** @throws UsageError if the directory already holds a predictor */
export async function emptyStore(dir: string): Promise<Store> {
  const store = await Store.open(dir)
  if ((await store.checkpoint()) === undefined) return store
  await store.close()
  throw new UsageError(
    `${dir} already holds a predictor: give another --dir, or continue from it with admb peer --dir ${dir}`
  )
}

/**
 * Gives the predictor an id, and stores it if there is a store.
 * @throws DivergenceError if it holds numbers that are not finite; then nothing is stored
 */
export async function keep(
  store: Store | undefined,
  spec: LearningSpec,
  { parameters, average, state, updates }: Trained,
  { inputs, averageLoss, accuracy }: SerialReport,
  moments: SavedMoments | undefined
) {
  if (![parameters, average, state].every(isFinite32)) {
    throw new DivergenceError(
      'the predictor holds numbers that are not finite, and is not stored: scale the features (--scale standard) or use a smaller step'
    )
  }
  const content = digest([parameters, average, state])
  if (store === undefined) return { updates, origin: 'train', incarnation: updates === 0 ? 0 : 1, digest: content }
  const key = store.identity ? decodeIdentityKey(store.identity) : await generateIdentityKey()
  if (!store.identity) await store.create(encodeIdentityKey(key))
  const { incarnation } = await store.begin(specText(spec))
  const name = { updates, origin: peerIdOf(key), incarnation: updates === 0 ? 0 : incarnation, digest: content }
  const predictor = { id: name, parameters, average, state }
  const parts = encodeSavedBlocks({ predictor, lineage: [] }, new ContributorTable())
  const hits = accuracy === undefined ? undefined : Math.round(accuracy * inputs)
  const progress: SavedProgress = { inputs, loss: (averageLoss ?? 0) * inputs, hits, moments }
  await store.save({ ...parts, progress })
  return name
}

/** A run that ended early, with what happened to its predictor. */
class EndedEarlyError extends Error {
  override readonly name: string
  readonly code: string | undefined
  constructor({ name, message, code }: Error & { readonly code?: string }, outcome: string) {
    super(`${message}; ${outcome}`)
    this.name = name
    this.code = code
  }
}

/**
 * Stores what was learned before an error, if its numbers are finite.
 * @param report the run's current report
 * @param store ends the training and stores the predictor
 * @returns the error to report
 */
export async function endedEarly(
  error: Error,
  dir: string,
  report: () => SerialReport,
  store: () => Promise<unknown>
): Promise<Error> {
  if (isBug(error)) return error
  const before = report()
  // After a signal, the last incomplete batch is learned as well.
  const learned = error instanceof InterruptedError ? before.inputs : before.updates
  if (learned === 0) return new EndedEarlyError(error, 'nothing was learned yet, and nothing is stored')
  try {
    await store()
  } catch (failure) {
    return new EndedEarlyError(error, `what was learned could not be stored: ${(failure as Error).message}`)
  }
  const { inputs, updates } = report()
  const what = `${formatNumber(inputs)} inputs (${formatNumber(updates)} updates)`
  return new EndedEarlyError(error, `what was learned from ${what} is stored in ${dir}`)
}

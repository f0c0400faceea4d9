/** Stores the predictor of a training run in a state directory, from which peers and other commands continue. */

import { encodeSavedBlocks, type PredictorId } from '../../admb/index.js'
import { ContributorTable } from '../../admb/state/coverage.js'
import type { LayerPlace } from '../../l2l/index.js'
import { type Blocks, DivergenceError, type SerialReport, type Trained } from '../../learning/index.js'
import { isFiniteBlock } from '../../numeric/numbers.js'
import type { SavedProgress } from '../../peer/thread-messages.js'
import { ModelMismatchError, Store } from '../../storage/index.js'
import { recipeOf } from '../../task/learning-parts.js'
import type { LearningSpec } from '../../task/learning-spec.js'
import { parseSpec, specText } from '../../task/spec-text.js'
import { InterruptedError, isBug, UsageError } from '../errors.js'
import { formatNumber } from '../output/output.js'
import { openLayered } from './layered.js'
import { readPredictor } from './stored.js'

/** An earlier run, from which training continues. */
export interface EarlierRun {
  readonly spec: LearningSpec
  readonly trained: Trained
  readonly progress: SavedProgress
  /** The block of the state by which peers with integer sums know the grid. Training in one process keeps it. @default none */
  readonly grid?: Blocks
  /** The layer file that holds the predictor, if one does. */
  readonly place?: LayerPlace
}

/** Parts of a spec with which the predictors of peers have another state than those of one process. */
const OF_PEERS = [
  ['batchMax', 'that choose b themselves'],
  ['influence', 'with bounded influence'],
  ['localSteps', 'with local steps']
] as const satisfies readonly (readonly [keyof LearningSpec, string])[]

/** State of the stream after a run. */
export type StreamState = Pick<SavedProgress, 'moments' | 'unfinished'>

/** Opens a directory for training. @returns the run that it holds, if any. @throws errors of the store */
export async function openForTraining(
  dir: string
): Promise<{ readonly store: Store; readonly earlier: EarlierRun | undefined }> {
  const store = await Store.open(dir)
  try {
    if ((await store.privacy()) !== undefined) {
      throw new UsageError(
        `${dir} protects its inputs (--dp): continue it with 'admb peer --dir ${dir}', or give another --dir`
      )
    }
    const text = await store.model()
    const checkpoint = await store.checkpoint()
    const layers = text === undefined ? undefined : await openLayered(dir, parseSpec(text))
    if (layers) return { store, earlier: layers }
    if (text === undefined || checkpoint === undefined) return { store, earlier: undefined }
    const spec = parseSpec(text)
    const [, peers] = OF_PEERS.find(([key]) => spec[key] !== undefined) ?? []
    if (peers) throw new UsageError(`${dir} is of peers ${peers}: continue it with 'admb peer --dir ${dir}'`)
    const { parameters, average, state, id } = (await readPredictor(store, dir, spec, checkpoint)).predictor
    const progress = checkpoint.progress as SavedProgress
    const exact = progress.unfinished?.average?.map(floatsFrom) ?? average
    const length = state.length - Number(spec.sums === 'lattice')
    const [own, grid] = [state.slice(0, length), state.slice(length)]
    const trained = { parameters, average: exact, state: own, updates: id.updates, dimension: spec.dimension }
    return { store, earlier: { spec, trained, progress, grid } }
  } catch (error) {
    await store.close()
    throw error
  }
}

/**
 * Checks that options that were given describe the model of the directory.
 * @param given the spec that all options describe
 * @param fields of the spec that an option was given for
 * @throws ModelMismatchError
 */
export function checkContinues(
  dir: string,
  { spec }: EarlierRun,
  given: LearningSpec,
  fields: readonly (keyof LearningSpec)[]
): void {
  const wanted = { ...spec, ...Object.fromEntries(fields.map(field => [field, given[field]])) } as LearningSpec
  if (specText(wanted) !== specText(spec)) throw new ModelMismatchError(dir, specText(spec), specText(wanted))
}

/**
 * Gives the predictor an id, and stores it if there is a store.
 * @throws DivergenceError if it holds numbers that are not finite; then nothing is stored
 */
export async function keep(
  store: Store | undefined,
  spec: LearningSpec,
  { parameters, average, state: own, updates }: Trained,
  report: SerialReport,
  source: StreamState,
  { progress: earlier, grid = [] }: Partial<Pick<EarlierRun, 'progress' | 'grid'>> = {}
) {
  const state = grid.length === 0 ? own : [...own, ...grid]
  if (![parameters, average, state].every(blocks => blocks.every(isFiniteBlock))) {
    throw new DivergenceError(
      'the predictor holds numbers that are not finite, and is not stored: scale the features (--scale standard) or use a smaller step'
    )
  }
  const { averaging, digest } = recipeOf(spec)
  const contained = averaging.contain?.(average, parameters) ?? average
  const content = digest([parameters, contained, state])
  const start = { updates, origin: 'train', incarnation: 0, nonce: 0, digest: content }
  if (store === undefined) return updates === 0 ? start : { ...start, incarnation: 1 }
  const { origin, incarnation, nonce } = await beginRun(store, spec)
  const name = { ...start, origin, ...(updates > 0 && { incarnation, nonce }) }
  const predictor = { id: name, parameters, average: contained, state }
  const parts = encodeSavedBlocks({ predictor, lineage: [] }, new ContributorTable())
  const { unfinished: left } = source
  const unfinished = left && (averaging.contain ? { ...left, average: average.map(floatsTo) } : left)
  const progress = progressAfter(report, { ...source, unfinished }, earlier)
  // The predictor contains all inputs of the journal that it can contain.
  await store.save({ ...parts, progress, journalFrom: Number.MAX_SAFE_INTEGER })
  return name
}

/** Starts a run in a directory, which may be new. */
export async function beginRun(
  store: Store,
  spec: LearningSpec
): Promise<Pick<PredictorId, 'origin' | 'incarnation' | 'nonce'>> {
  // Commands without a directory do not load libp2p.
  const { decodeIdentityKey, encodeIdentityKey, generateIdentityKey, peerIdOf } = await import('../../network/keys.js')
  const key = store.identity ? decodeIdentityKey(store.identity) : await generateIdentityKey()
  if (!store.identity) await store.create(encodeIdentityKey(key))
  const { incarnation, nonce } = await store.begin(specText(spec))
  return { origin: peerIdOf(key), incarnation, nonce }
}

/** The progress after a run. @param earlier that of the runs before */
export function progressAfter(
  { inputs, weight, averageLoss, accuracy }: SerialReport,
  source: StreamState,
  earlier?: SavedProgress
): SavedProgress {
  const hits = accuracy === undefined ? undefined : hitsOf(accuracy, weight, inputs) + (earlier?.hits ?? 0)
  const loss = (averageLoss ?? 0) * weight + (earlier?.loss ?? 0)
  const surplus = weight - inputs + (earlier?.surplus ?? 0)
  return { inputs: inputs + (earlier?.inputs ?? 0), surplus, loss, hits, ...source }
}

function floatsTo({ buffer, byteOffset, byteLength }: Float32Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('base64')
}

function floatsFrom(text: string): Float32Array {
  return new Float32Array(Uint8Array.from(Buffer.from(text, 'base64')).buffer)
}

/** A whole number, unless the inputs have weights. */
function hitsOf(accuracy: number, weight: number, inputs: number): number {
  return weight === inputs ? Math.round(accuracy * inputs) : accuracy * weight
}

/** A run that ended early, with what happened to its predictor. */
export class EndedEarlyError extends Error {
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
 * @param continues whether the same command continues with the next row
 * @param store ends the training and stores the predictor
 * @returns the error to report
 */
export async function endedEarly(
  error: Error,
  dir: string,
  report: () => SerialReport,
  store: () => Promise<unknown>,
  continues = false
): Promise<Error> {
  if (isBug(error)) return error
  if ((error as { code?: string }).code === 'ERR_HOST_LOST')
    return new EndedEarlyError(error, `${dir} is as it was before this run`)
  const before = report()
  // After a signal, the last incomplete batch is learned as well, unless it is stored.
  const learned = error instanceof InterruptedError && !continues ? before.inputs : before.updates
  if (learned === 0) return new EndedEarlyError(error, 'nothing was learned yet, and nothing is stored')
  try {
    await store()
  } catch (failure) {
    return new EndedEarlyError(error, `what was learned could not be stored: ${(failure as Error).message}`)
  }
  const { inputs, updates } = report()
  const what = `${formatNumber(inputs)} inputs (${formatNumber(updates)} updates)`
  const more = continues ? ', and the same command continues' : ''
  return new EndedEarlyError(error, `what was learned from ${what} is stored in ${dir}${more}`)
}

/** Loads a stored predictor with its model, also from a state directory that another process uses. */

import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { copyFile, link, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Predictor, PredictorAssembler, replaySteps, shapesOf } from '../../admb/index.js'
import { RunningMoments, type Scaling } from '../../data/index.js'
import type { Execution } from '../../l2l/index.js'
import { type Blocks, type Learner, learnerAfter } from '../../learning/index.js'
import type { SavedProgress } from '../../peer/thread-messages.js'
import { type Checkpoint, DamagedStateError, MissingStateError, Store } from '../../storage/index.js'
import { classNamesOf, learningParts } from '../../task/learning-parts.js'
import type { LearningSpec } from '../../task/learning-spec.js'
import { predictorMetadata, predictorTensors } from '../../task/predictor-metadata.js'
import { parseSpec } from '../../task/spec-text.js'
import { UsageError } from '../errors.js'
import { layeredPredictor, openLayered } from './layered.js'

export interface Stored {
  readonly spec: LearningSpec
  /** For this predictor. */
  readonly learner: Learner
  readonly predictor: Predictor
  /** The moments by which its inputs are scaled. */
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
    const { learner, predictor } =
      layers === undefined
        ? await readPredictor(store, dir, spec, checkpoint as Checkpoint, execution)
        : { learner: layers.learner, predictor: layeredPredictor(layers) }
    return {
      spec,
      learner: learnerAfter(learner, predictor.id.updates),
      predictor,
      scaling: { moments: RunningMoments.restore(progress.moments ?? []), frozen: true }
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

/**
 * The flags with a path that can be read. The copy of a state directory is removed when the process ends.
 * @throws UsageError if the directory lacks the frozen weights of its network; errors of the store
 */
export async function withReadableWeights<Flags extends { readonly weights?: string }>(flags: Flags): Promise<Flags> {
  const { weights } = flags
  if (weights === undefined || !existsSync(join(weights, 'admb.json'))) return flags
  const stored = await loadStored(weights, undefined)
  const { spec, predictor } = stored
  if (spec.network?.tuning !== undefined) {
    throw new UsageError(
      `${weights} holds only what was trained of a network: export it first (admb export --dir ${weights} --weights PATH --out FOLDER)`
    )
  }
  const { writeWeights } = await import('../../nn/weights/write-checkpoint.js')
  const folder = mkdtempSync(join(tmpdir(), 'admb-weights-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  writeWeights(
    folder,
    await predictorTensors(spec, predictor.average),
    metadataOf(stored, predictor.average, 'average')
  )
  return { ...flags, weights: folder }
}

const MARKER = 'admb.json'
/** A running peer may replace its tables while they are copied. */
const ATTEMPTS = 4

/**
 * Opens a copy of the state, calls `read` with it, and removes it.
 * @throws MissingStateError, DamagedStateError; errors of `read`
 */
export async function readingState<T>(dir: string, read: (store: Store) => Promise<T>): Promise<T> {
  const copy = await mkdtemp(join(tmpdir(), 'admb-read-'))
  try {
    const store = await openCopy(dir, copy)
    try {
      return await read(store)
    } finally {
      await store.close()
    }
  } catch (error) {
    // The user knows the original.
    if (error instanceof Error) error.message = error.message.replaceAll(copy, dir)
    throw error
  } finally {
    await rm(copy, { recursive: true, force: true })
  }
}

async function openCopy(dir: string, copy: string): Promise<Store> {
  for (let attempt = 1; ; attempt++) {
    try {
      await copyState(dir, copy)
      return await Store.openExisting(copy)
    } catch (error) {
      const isChanging = error instanceof DamagedStateError || (error as NodeJS.ErrnoException).code === 'ENOENT'
      if (!isChanging || attempt === ATTEMPTS) throw error
      await rm(join(copy, 'db'), { recursive: true, force: true })
    }
  }
}

/** @throws MissingStateError */
async function copyState(dir: string, copy: string): Promise<void> {
  const from = join(dir, 'db')
  const to = join(copy, 'db')
  try {
    await copyFile(join(dir, MARKER), join(copy, MARKER))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw new MissingStateError(dir)
    throw error
  }
  await mkdir(to, { recursive: true })
  const names = await readdir(from).catch(() => [])
  // The files that name others come first: what they name exists then, or the copy is repeated.
  const isTable = (name: string) => /\.(ldb|sst)$/.test(name)
  for (const name of names.filter(name => !isTable(name) && name !== 'LOCK' && !name.startsWith('LOG')))
    await copyFile(join(from, name), join(to, name))
  for (const name of names.filter(isTable)) {
    const [original, linked] = [join(from, name), join(to, name)]
    await link(original, linked).catch(() => copyFile(original, linked))
  }
}

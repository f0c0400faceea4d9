/**
 * What a peer learns: what its state directory holds, or else what the network that it joins has agreed on, or else what its own options
 * and data say. Options that are not given are taken from the first of these.
 */
import type { OnNotice } from '../base/errors.js'
import { headOf, RunningMoments, resolveScale, type StreamOptions } from '../data/index.js'
import type { Log } from '../network/types.js'
import { type Join, ProgramError } from '../program/messages.js'
import { MissingStateError, Store } from '../storage/index.js'
import { startDigest } from '../task/learning-parts.js'
import {
  growingNames,
  type LearningSpec,
  type ProgramSpec,
  predictsNumbers,
  refuseProgram,
  schemaOf
} from '../task/learning-spec.js'
import { measured, scaledColumns } from '../task/measured.js'
import type { TaskOptions } from '../task/options.js'
import { loadPlugins } from '../task/plugins.js'
import { programSpec } from '../task/spec.js'
import { parseSpec } from '../task/spec-text.js'
import { type ReadOptions, streamFor, withoutUndefined } from '../task/stream.js'
import { createPeerTask, type Task } from '../task/task.js'
import { networkSpec } from './joining.js'
import { joins, type PeerOptions } from './options.js'
import { mismatch } from './peer-program.js'
import { reconcile } from './reconcile.js'
import type { SavedProgress } from './thread-messages.js'

/** Where a peer finds what was agreed on before. */
export type Surroundings = Pick<
  PeerOptions,
  'dir' | 'identity' | 'peers' | 'mdns' | 'networkKey' | 'networkId' | 'allow' | 'invitation' | 'stun' | 'log'
>

export type PeerTask = Pick<Task, 'stream' | 'plugins' | 'coverage'> & { readonly spec: LearningSpec }

/** Options of a task that say how the data is read, and not what is learned. */
const READING: ReadonlySet<string> = new Set(['data', 'schema', 'plugins', 'length'])

/**
 * @param onNotice receives what could be wrong of what the first rows determine @default none
 * @throws OptionError, ModelError, PluginError; errors of the store, the network and the stream
 */
export async function settleTask(
  given: TaskOptions,
  surroundings: Surroundings,
  onNotice?: OnNotice
): Promise<PeerTask> {
  const { dir, log } = surroundings
  const options = withoutUndefined(given)
  const stored = dir === undefined ? undefined : await storedIn(dir)
  if (stored) return continued(options, stored, dir as string, log)
  if (options.schema === undefined && joins(surroundings)) {
    const spec = await networkSpec(surroundings)
    if (spec && canJoin(spec)) {
      log('info', 'takes over the model and the schema of the network', {})
      return joined(options, spec, onNotice)
    }
  }
  const { data } = options
  if (!needsHead(options)) return measured(await createPeerTask(options, onNotice))
  const { sample, whole } = await headOf(process.stdin)
  const reading = data as StreamOptions
  const task = await createPeerTask({ ...options, data: { ...reading, stdin: sample() } }, onNotice)
  const { stream, ...others } = await measured(task, sample())
  return { ...others, stream: stream && { ...stream, stdin: whole } }
}

/**
 * The spec of a peer whose gradients a program computes.
 * @param program waits for it, and reads what it starts from
 * @returns the spec, and what the program starts from, unless the state directory holds newer parameters
 * @throws OptionError, ProgramError; errors of the store and the network
 */
export async function settleProgram(
  given: TaskOptions,
  surroundings: Surroundings,
  program: () => Promise<StartedProgram>
): Promise<{ readonly spec: LearningSpec; readonly start?: readonly Float32Array[] }> {
  const options = withoutUndefined(given)
  const { dir } = surroundings
  const stored = dir === undefined ? undefined : await storedIn(dir)
  if (stored?.hasCheckpoint && stored.spec.model === 'external')
    return { spec: programSpec({ ...optionsOf(stored.spec), ...options }, stored.spec.program) }
  const { join, start } = await program()
  const known = stored?.spec ?? (joins(surroundings) ? await networkSpec(surroundings) : undefined)
  const own = { blocks: join.blocks, fingerprint: join.fingerprint, start: startDigest(start) }
  if (known === undefined) return { spec: programSpec(options, own), start }
  const reason = mismatch(join, known)
  if (reason !== undefined) throw new ProgramError(`${join.name} cannot join: ${reason}`)
  const spec = programSpec({ ...optionsOf(known), ...options }, own)
  if (own.start === (known as ProgramSpec).program.start) return { spec, start }
  throw new ProgramError(
    `${join.name} starts from other parameters than the network: start all programs from the same (torch.manual_seed before the model is made)`
  )
}

/** A program that has joined, and the parameters that its model starts from. */
export interface StartedProgram {
  readonly join: Join
  readonly start: readonly Float32Array[]
}

/** Whether the schema of a table on standard input follows from its first rows. Otherwise the peer starts before there are any. */
function needsHead({ data, schema, features, hashBits }: TaskOptions): boolean {
  const isKnown = (schema ?? features ?? hashBits) !== undefined
  return typeof data === 'object' && data.data === '-' && (data.format === 'csv' || data.format === 'jsonl') && !isKnown
}

/** What a directory has learned, continued. */
async function continued(
  options: TaskOptions,
  { spec: stored, moments, hasLearned }: StoredSpec,
  dir: string,
  log: Log
): Promise<PeerTask> {
  const spec = options.scale === 'none' ? stored : withConstants(stored, moments)
  const keeps = options.sums === undefined && hasLearned
  if (keeps && spec.sums === undefined && canBeIntegers(spec))
    log('info', `${dir} has exact sums, which this peer keeps: --sums lattice converts them to integers`, {})
  const { sums, ...others } = options
  const task = await agreed(others, spec)
  if (keeps || sums === (task.spec.sums ?? 'exact')) return task
  const { sums: _sums, ...rest } = task.spec
  const isLattice = (sums ?? (canBeIntegers(spec) ? 'lattice' : 'exact')) === 'lattice'
  return { ...task, spec: { ...rest, ...(isLattice && { sums: 'lattice' }) } as LearningSpec }
}

/** What a network has agreed on, for the data of a peer. Its file may lack columns. */
async function joined(
  options: TaskOptions,
  spec: LearningSpec,
  onNotice: OnNotice = () => undefined
): Promise<PeerTask> {
  const { data } = options
  const reading = typeof data === 'string' ? { data } : data
  if (reading === undefined || spec.features.columns === undefined) return agreed(options, spec)
  const { label = spec.features.label } = reading
  if (reading.data !== '-') {
    const own = await createPeerTask({ data: { ...reading, ...(label !== undefined && { label }) } })
    reconcile(spec, own.spec, reading.data, onNotice)
  }
  return agreed(options, spec)
}

/** The task of a spec that others share. Options that are given are checked against it by whoever compares specs. */
async function agreed({ scale, ...others }: TaskOptions, spec: LearningSpec): Promise<PeerTask> {
  if (others.data !== undefined) refuseProgram(spec)
  // The schema scales its numbers.
  const isScaled = scale === 'standard' && spec.features.columns?.some(({ mean }) => mean !== undefined)
  const options = isScaled || scale === undefined ? others : { ...others, scale }
  const isTable = spec.features.columns !== undefined && options.data !== undefined
  const given = typeof options.data === 'string' ? { data: options.data } : options.data
  const data = isTable && given ? { ...given, lacksColumns: true } : given
  const isExplicit = Object.keys(options).some(option => !READING.has(option))
  if (isExplicit || spec.network?.text !== undefined) {
    return createPeerTask({ ...optionsOf(spec), ...options, data, schema: options.schema ?? schemaOf(spec) })
  }
  const plugins = options.plugins?.map(String) ?? []
  await loadPlugins(plugins)
  if (data === undefined) return { spec, stream: undefined, plugins }
  return { spec, stream: streamFor(spec, data as ReadOptions), plugins }
}

/** The options that give this spec, with its schema and data that fit it. */
function optionsOf(spec: LearningSpec): TaskOptions {
  const { batch, batchMax, rule, averaging, l2, sums = 'exact', algorithm, influence } = spec
  const { localSteps, localMomentum, sumBytes } = spec
  const { scale, constant, hashBits } = spec.features
  if (spec.model === 'external')
    return withoutUndefined<TaskOptions>({
      batch,
      rule,
      averaging,
      sums,
      algorithm,
      localSteps,
      localMomentum,
      sumBytes,
      trust: influence
    })
  const layers = spec.network?.layers
  const model = layers === undefined ? spec.model : layers.model === 'layers' ? { layers: layers.layers } : layers
  return withoutUndefined<TaskOptions>({
    model,
    batch: batchMax === undefined ? batch : (`${batch}..${batchMax}` as const),
    rule,
    averaging,
    l2: l2 === 0 ? undefined : l2,
    sums,
    algorithm,
    localSteps,
    localMomentum,
    sumBytes,
    trust: influence,
    scale,
    constant: layers === undefined ? constant : undefined,
    hashBits,
    target: layers !== undefined && predictsNumbers(spec) ? 'number' : undefined
  })
}

/** Starting weights and texts are not part of a spec, so a peer needs them itself. */
function canJoin({ network }: LearningSpec): boolean {
  return network?.weights === undefined && network?.text === undefined
}

/** The spec with the moments of the rows that were learned as constants of its schema, so that all peers scale alike. */
function withConstants(spec: LearningSpec, moments: RunningMoments): LearningSpec {
  const { columns, hashBits, constant, scale } = spec.features
  if (scale !== 'standard' || columns === undefined) return spec
  const schema = scaledColumns(columns, hashBits, moments, constant)
  return { ...spec, features: { ...spec.features, columns: schema, scale: resolveScale('auto', schema) } }
}

/** Drops what a peer has learned in a directory. @throws errors of the store */
export async function forgetModel(dir: string): Promise<void> {
  const store = await Store.openExisting(dir)
  try {
    await store.forgetModel()
  } finally {
    await store.close()
  }
}

interface StoredSpec {
  readonly spec: LearningSpec
  /** Moments of the rows that were learned. */
  readonly moments: RunningMoments
  /** Whether a peer has learned in the directory. */
  readonly hasLearned: boolean
  readonly hasCheckpoint: boolean
}

/** @returns undefined if the directory holds no state */
async function storedIn(dir: string): Promise<StoredSpec | undefined> {
  let store: Store
  try {
    store = await Store.openExisting(dir)
  } catch (error) {
    if (error instanceof MissingStateError) return undefined
    throw error
  }
  try {
    const text = await store.model()
    if (text === undefined) return undefined
    const checkpoint = await store.checkpoint()
    const progress = checkpoint?.progress as SavedProgress | undefined
    const moments = RunningMoments.restore(progress?.moments ?? [])
    const hasLearned = await store.hasJournal()
    return { spec: parseSpec(text), moments, hasLearned, hasCheckpoint: checkpoint !== undefined }
  } finally {
    await store.close()
  }
}

function canBeIntegers(spec: LearningSpec): boolean {
  return growingNames(spec) === undefined
}

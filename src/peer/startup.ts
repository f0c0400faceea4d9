/** The start of a peer: its identity, its network, and the initial state of its learner. */
import { FrameError, maximumFrameBytes, type SavedSteps, shapesOf } from '../admb/index.js'
import type { CodedError } from '../base/errors.js'
import {
  createNetwork,
  decodeIdentityKey,
  encodeIdentityKey,
  generateIdentityKey,
  type IdentityKey,
  type Membership,
  type Network,
  networkIdIn,
  parseNetworkId
} from '../network/index.js'
import type { HeaderKey } from '../network/signatures.js'
import { type Checkpoint, DamagedStateError, drawNonce, type StartedRun, type Store } from '../storage/index.js'
import { learningParts } from '../task/learning-parts.js'
import { PROTOCOL_VERSION } from '../task/learning-spec.js'
import { learningSpecFields } from '../task/spec-text.js'
import type { LearnerHandle } from './learner-handle.js'
import { CARRY_PARAMETERS, DEFAULT_CARRY, DEFAULT_PERIOD_MS, joins, type PeerOptions } from './options.js'
import { initialBudget } from './privacy-budget.js'
import type { LearnerStatus, SavedProgress, StoredHead, StoredPredictor, ThreadInit } from './thread-messages.js'
import { trustLimits } from './trust.js'

/** The stored identity, or else the given or a new one, which is stored if there is a store. */
export async function identityOf(store: Store | undefined, given: IdentityKey | undefined): Promise<IdentityKey> {
  if (store?.identity) return decodeIdentityKey(store.identity)
  const key = given ?? (await generateIdentityKey())
  await store?.create(encodeIdentityKey(key))
  return key
}

/** The id of the network that the peer joins, if it has one. @throws NetworkError, NetworkMismatchError */
export async function networkIdOf(
  { networkId, networkKey }: Pick<PeerOptions, 'networkId' | 'networkKey'>,
  store: Store | undefined
): Promise<string | undefined> {
  const given = networkId === undefined ? networkKey && networkIdIn(networkKey) : parseNetworkId(networkId)
  return store === undefined ? given : store.networkFor(given)
}

/** @throws NetworkError */
export async function openNetwork(
  options: PeerOptions,
  privateKey: IdentityKey,
  networkId: string | undefined,
  membership: Membership | undefined
): Promise<Network> {
  const { learner, recipe } = await learningParts(options.spec)
  const shapes = shapesOf(learner.layout, recipe)
  return createNetwork({
    privateKey,
    listen: options.listen ?? ['/ip4/0.0.0.0/tcp/0'],
    networkKey: options.networkKey,
    networkId,
    allow: options.allow,
    membership,
    hello: { protocol: PROTOCOL_VERSION, fields: learningSpecFields(options.spec) },
    maxFrameBytes: maximumFrameBytes(shapes),
    mdns: options.mdns,
    relay: options.relay,
    dials: options.peers,
    upgrades: options.upgrades,
    stun: options.stun,
    log: options.log
  })
}

/** @param run undefined for a peer without a store */
export async function learnerInit(
  options: PeerOptions,
  self: string,
  signing: HeaderKey,
  run: StartedRun | undefined,
  store: Store | undefined
): Promise<ThreadInit> {
  const {
    spec,
    execution,
    stream,
    rate,
    period = DEFAULT_PERIOD_MS,
    predictWith = 'average',
    drift = 'adwin'
  } = options
  const { blocks } = (await learningParts(spec)).learner.layout
  const parameters = blocks.reduce((sum, block) => sum + block.length, 0)
  return {
    spec,
    plugins: options.plugins ?? [],
    execution: options.workerToken === undefined ? execution : { ...execution, hasRemoteWorkers: true },
    self,
    signing,
    trust: trustLimits(options, self),
    incarnation: run?.incarnation ?? 1,
    nonce: run?.nonce ?? drawNonce(),
    period: period === 'auto' ? DEFAULT_PERIOD_MS : period,
    adaptsPeriod: period === 'auto',
    parameters,
    carry: options.carry ?? (parameters > CARRY_PARAMETERS ? 0 : DEFAULT_CARRY),
    predictWith,
    stream,
    labelDelay: options.labelDelay,
    rate,
    drift: drift === 'off' ? undefined : drift,
    start: options.program?.start && [...options.program.start],
    saved: store && run?.checkpoint && (await storedHead(store, run.checkpoint)),
    progress: progressOf(run),
    joins: joins(options),
    journal: run?.journal,
    keepJournal: options.keepJournal ?? false,
    budget: await initialBudget(options, store, run)
  }
}

/** The moments are only in checkpoints. */
function progressOf(run: StartedRun | undefined): SavedProgress | undefined {
  const stored = run?.checkpoint?.progress as SavedProgress | undefined
  const tail = run?.journal.tail
  if (tail === undefined) return stored
  const { next: _, ...sums } = JSON.parse(tail) as Omit<SavedProgress, 'moments'> & { next?: number }
  return stored === undefined || sums.inputs > stored.inputs ? { ...stored, ...sums } : stored
}

/** The stored predictor, with the steps since. */
export async function storedPredictor(store: Store, checkpoint: Checkpoint): Promise<StoredPredictor> {
  const { count, ...others } = await storedHead(store, checkpoint)
  const blocks: Uint8Array[] = []
  for (let index = 0; index < count; index++) blocks.push(await store.block(index))
  return { ...others, blocks }
}

async function storedHead(store: Store, { head, blocks, steps }: Checkpoint): Promise<StoredHead> {
  const records: SavedSteps[] = []
  for (let index = 0; index < steps; index++) records.push(await store.steps(index))
  return { head, count: blocks, steps: records }
}

/** The learner's first status. @throws DamagedStateError if the stored predictor cannot be read */
export async function started(learner: LearnerHandle, { saved }: ThreadInit, dir = ''): Promise<LearnerStatus> {
  try {
    return await learner.ready
  } catch (error) {
    if (saved && (error as CodedError).code === FrameError.code)
      throw new DamagedStateError(dir, (error as Error).message)
    throw error
  }
}

/** Options of a peer, their types, and which values they have. */

import { streamType } from '../data/parsing.js'
import {
  type Active,
  boundsOf,
  checkFeatures,
  checkOptions,
  driftTests,
  OptionError,
  type OptionsOf,
  Privacy,
  type PrivacyOptions,
  optionTypes as types
} from '../learning/index.js'
import type { IdentityKey, Log, WebSocketUpgrades } from '../network/types.js'
import { growingNames, type LearningSpec } from '../task/learning-spec.js'
import { executionType, specType, trustType } from '../task/options.js'
import { NAME_PATTERN } from '../view/index.js'
import type { PeerProgram } from './peer-program.js'
import type { PeerPredictWith } from './thread-messages.js'

const { bytes, choice, flag, number, object, text, texts, typed } = types

/** Whether a peer looks for others: the options name them, or how to find them. */
export function joins({ peers = [], mdns = false }: Pick<PeerOptions, 'peers' | 'mdns'>): boolean {
  return peers.length > 0 || mdns
}

/** Types of the options that a peer has besides its spec. */
export const peerTypes = {
  /** How a network is executed. @default one minibatch at a time on the first device that works */
  execution: executionType,
  /**
   * Token with which device workers (`admb worker`) join the devices of this peer, which then share the computation of its network.
   * @default no worker joins
   */
  workerToken: text,
  /** The stream to learn from. @default none: only requests are learned */
  stream: streamType,
  /** Limit of inputs per second. @default no limit */
  rate: number,
  /**
   * Time for which predictions of requests wait for their labels, in milliseconds. Predictions then have an id, with which the
   * label may be learned. @default labels come with the inputs
   */
  labelDelay: number,
  /**
   * Period T in milliseconds; 'auto': 100 ms, and sums are sent less often where that delays updates little (docs/guides/choosing.md).
   * @default 100
   */
  period: types.either(number, choice('auto')),
  /** Periods S for which unused gradients are carried over. @default DEFAULT_CARRY, 0 for models above CARRY_PARAMETERS */
  carry: number,
  /** The predictor that serves predictions. @default 'average' */
  predictWith: typed<PeerPredictWith>(text),
  /** How rises of the loss are detected. Each is logged, and published to all peers. @default 'adwin' */
  drift: choice(...driftTests, 'off'),
  /**
   * Differential privacy of the inputs that this peer learns, against all who see what it sends (docs/guides/privacy.md). Requires `dir`, which
   * holds the budget. Linear models only. @default none
   */
  dp: object<PrivacyOptions>('{ epsilon: 1, delta: 1e-6, clip: 1 }'),
  /** State directory. @default none: the state is lost when the peer stops */
  dir: text,
  /** Whether `dir` keeps the whole journal and lineage, for `admb audit`: some 100 bytes for each segment. @default false */
  keepJournal: flag,
  /** Multiaddresses to listen on. @default all interfaces, a free port */
  listen: texts,
  /** Multiaddresses of peers to connect to. @default none */
  peers: texts,
  /** Maximum number of tree neighbours. @default 4 */
  degree: number,
  /** Whether to find peers on the local network with multicast DNS. @default false */
  mdns: flag,
  /** Whether to relay between peers that cannot reach each other directly. @default false */
  relay: flag,
  /**
   * Connections over WebSockets on the port of an HTTP server. `serveHttp` passes them on if it has the join page.
   * @default none
   */
  upgrades: object<WebSocketUpgrades>('new WebSocketUpgrades()'),
  /** URLs of STUN servers, with which tabs find their public addresses (`stun:host:port`). @default none */
  stun: texts,
  /** Content of a network key file. @default none: any peer with the same learning spec can join */
  networkKey: bytes,
  /**
   * Id of the network, 1 to 64 letters, digits, dots, dashes and underscores: peers of other networks, and those without an id, are
   * refused.
   * @default the one in the network key file, or that of the state directory, or none
   */
  networkId: text,
  /** Ids of the peers that may connect. @default all */
  allow: types.set,
  /** Whether invitations of allowed peers admit further peers. Requires `allow`. @default false */
  acceptInvitations: flag,
  /**
   * Invitation, as printed by `admb invite`, with which other peers admit this one. Without `allow`, this peer takes the list of the
   * peer that has admitted it.
   * @default none
   */
  invitation: text,
  /**
   * What this peer uses of others, if they are not trusted: with `rate`, no more gradients a second of any of them, each of which may save up those of ten
   * seconds; with `signers`, a whole predictor that does not follow waits until that number of allowed peers answer for it, which requires
   * `allow`. Their influence is bounded in `spec`, on which all peers agree.
   * @default 'members'
   */
  trust: trustType,
  /** A program in another process that computes the gradients, if `spec` is of its model. @default none */
  program: object<PeerProgram>('{ server, start }'),
  /** Identity for a peer without a state directory, or with a new one. @default a new identity */
  identity: object<IdentityKey>('an Ed25519 key pair'),
  /** Display name on the pages of the network, at most 40 characters. @default its id */
  name: text,
  /**
   * Modules with custom losses, rules, layers and readers. `spec.plugins` contains the result of `loadPlugins`.
   * @default none
   */
  plugins: texts,
  /** Receives the lines of the log. */
  log: typed<Log>(types.callback)
}

/** Options of a peer whose learning spec is already determined. `createPeer` derives it from a task. */
export interface PeerOptions extends OptionsOf<typeof peerTypes> {
  readonly spec: LearningSpec
  readonly log: Log
}

export const DEFAULT_PERIOD_MS = 100
/**
 * Default of S in periods. By measurement (`docs/results/benchmarks.md`), it suffices for a tree of diameter 10, and is no worse than
 * smaller values for five peers.
 */
export const DEFAULT_CARRY = 16
/** Number of parameters above which gradients are not carried over by default, because their segments would fill the memory. */
export const CARRY_PARAMETERS = 2_000_000
export const DEFAULT_DEGREE = 4

/** A tree neighbour was added or removed. */
export interface NeighbourChange {
  /** Its peer id. */
  readonly peer: string
  readonly isLinked: boolean
  /** Why it was removed. */
  readonly reason?: string
}

const peerType = types.options<PeerOptions>({ ...peerTypes, spec: specType }, ['spec', 'log'])
const STUN_URL = /^stuns?:[\w.-]+(:\d{1,5})?$/

/** @throws OptionError for an option that is unknown or of another type, or has an invalid value */
export function checkPeerOptions(options: PeerOptions): void {
  checkOptions('the options of the peer', peerType, options)
  const { name, stun } = options
  // Other peers would refuse every status with this name.
  if (name !== undefined && !NAME_PATTERN.test(name)) {
    throw new OptionError('the name must have 1 to 40 printable characters')
  }
  const noStun = stun?.find(url => !STUN_URL.test(url))
  if (noStun !== undefined)
    throw new OptionError(`stun: ${noStun} is not an address such as stun:stun.example.org:3478`)
  if (options.dp !== undefined) new Privacy(options.dp)
  checkFeatures(featuresOf(options))
}

function featuresOf({ spec, dp, dir, predictWith, allow, trust, ...options }: PeerOptions): Active {
  return {
    peers: true,
    network: spec.network !== undefined || spec.model === 'external',
    stateDirectory: dir !== undefined,
    allowList: allow !== undefined,
    masterAlgorithm: spec.algorithm !== undefined,
    localSteps: spec.localSteps !== undefined,
    latticeSums: spec.sums === 'lattice',
    sumBytes: spec.sumBytes !== undefined,
    newClasses: growingNames(spec) !== undefined,
    aheadPredictions: predictWith === 'ahead',
    measuredScale: spec.features.scale === 'standard',
    privacy: dp !== undefined,
    signers: (boundsOf(trust)?.signers ?? 0) > 0,
    invited: options.acceptInvitations ?? false,
    wholeJournal: options.keepJournal ?? false
  }
}

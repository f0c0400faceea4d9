/** Options of a peer. */
import type { StreamOptions } from '../data/index.js'
import type { Execution } from '../l2l/index.js'
import type { DriftTest, PrivacyOptions, Trust } from '../learning/index.js'
import type { IdentityKey, Log, WebSocketUpgrades } from '../network/types.js'
import type { LearningSpec } from '../task/learning-spec.js'
import type { PeerPredictWith } from './thread-messages.js'

/** Whether a peer looks for others: the options name them, or how to find them. */
export function joins({ peers = [], mdns = false }: Pick<PeerOptions, 'peers' | 'mdns'>): boolean {
  return peers.length > 0 || mdns
}

/** Options of a peer whose learning spec is already determined. `createPeer` derives it from a task. */
export interface PeerOptions {
  readonly spec: LearningSpec
  /** How a network is executed. @default one minibatch at a time on the first device that works */
  readonly execution?: Execution
  /** The stream to learn from. @default none: only requests are learned */
  readonly stream?: StreamOptions
  /** Limit of inputs per second. @default no limit */
  readonly rate?: number
  /**
   * Time for which predictions of requests wait for their labels, in milliseconds. Predictions then have an id, with which the
   * label may be learned. @default labels come with the inputs
   */
  readonly labelDelay?: number
  /**
   * Period T in milliseconds; 'auto': 100 ms, and sums are sent less often where that delays updates little (docs/choosing.md).
   * @default 100
   */
  readonly period?: number | 'auto'
  /** Periods S for which unused gradients are carried over. @default DEFAULT_CARRY, 0 for models above CARRY_PARAMETERS */
  readonly carry?: number
  /** The predictor that serves predictions. @default 'average' */
  readonly predictWith?: PeerPredictWith
  /** How rises of the loss are detected. Each is logged, and published to all peers. @default 'adwin' */
  readonly drift?: DriftTest | 'off'
  /**
   * Differential privacy of the inputs that this peer learns, against all who see what it sends (docs/privacy.md). Requires `dir`, which
   * holds the budget. Linear models only. @default none
   */
  readonly dp?: PrivacyOptions
  /** State directory. @default none: the state is lost when the peer stops */
  readonly dir?: string
  /** Whether `dir` keeps the whole journal and lineage, for `admb audit`: some 100 bytes for each segment. @default false */
  readonly keepJournal?: boolean
  /**
   * Where the long arrays of the learner are: in memory, or in files of `dir`, of which the operating system keeps in memory what fits
   * (docs/l2l.md). Requires Linux. @default 'memory'
   */
  readonly store?: 'memory' | 'disk'
  /** Multiaddresses to listen on. @default all interfaces, a free port */
  readonly listen?: readonly string[]
  /** Multiaddresses of peers to connect to. @default none */
  readonly peers?: readonly string[]
  /** Maximum number of tree neighbours. @default 4 */
  readonly degree?: number
  /** Whether to find peers on the local network with multicast DNS. @default false */
  readonly mdns?: boolean
  /** Whether to relay between peers that cannot reach each other directly. @default false */
  readonly relay?: boolean
  /**
   * Connections over WebSockets on the port of an HTTP server. `serveHttp` passes them on if it has the join page.
   * @default none
   */
  readonly upgrades?: WebSocketUpgrades
  /** URLs of STUN servers, with which tabs find their public addresses (`stun:host:port`). @default none */
  readonly stun?: readonly string[]
  /** Content of a network key file. @default none: any peer with the same learning spec can join */
  readonly networkKey?: Uint8Array
  /**
   * Id of the network, 1 to 64 letters, digits, dots, dashes and underscores: peers of other networks, and those without an id, are
   * refused.
   * @default the one in the network key file, or that of the state directory, or none
   */
  readonly networkId?: string
  /** Ids of the peers that may connect. @default all */
  readonly allow?: ReadonlySet<string>
  /** Whether invitations of allowed peers admit further peers. Requires `allow`. @default false */
  readonly acceptInvitations?: boolean
  /**
   * Invitation, as printed by `admb invite`, with which other peers admit this one. Without `allow`, this peer takes the list of the
   * peer that has admitted it.
   * @default none
   */
  readonly invitation?: string
  /**
   * What this peer uses of others, if they are not trusted: with `rate`, no more gradients a second of any of them, each of which may save up those of ten
   * seconds; with `signers`, a whole predictor that does not follow waits until so many allowed peers answer for it, which requires
   * `allow`. Their influence is bounded in `spec`, on which all peers agree.
   * @default 'members'
   */
  readonly trust?: Trust
  /** Identity for a peer without a state directory, or with a new one. @default a new identity */
  readonly identity?: IdentityKey
  /** Display name on the pages of the network, at most 40 characters. @default its id */
  readonly name?: string
  /**
   * Modules with custom losses, rules, layers and readers. `spec.plugins` contains the result of `loadPlugins`.
   * @default none
   */
  readonly plugins?: readonly string[]
  readonly log: Log
}

export const DEFAULT_PERIOD_MS = 100
/**
 * Default of S in periods. By measurement (`docs/benchmarks.md`), it suffices for a tree of diameter 10, and is no worse than
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

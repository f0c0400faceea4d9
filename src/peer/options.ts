/** What a peer is started with, and what it says of itself. */
import type { PredictorId } from '../admb/index.js'
import type { Execution } from '../l2l/index.js'
import type { IdentityKey, Log } from '../network/index.js'
import type { StreamOptions } from '../streams/index.js'
import type { LearningSpec } from '../task/learning-spec.js'
import type { PredictWith } from './thread-messages.js'

export interface PeerOptions {
  readonly spec: LearningSpec
  /** How a network is executed here. Default: one minibatch at a time on the first device that works. */
  readonly execution?: Execution
  /** What to learn from; undefined: only what is posted to the peer. */
  readonly stream?: StreamOptions
  /** Inputs a second. Default: as fast as they come. */
  readonly rate?: number
  /** T in milliseconds. Default 100. */
  readonly period?: number
  /** S in periods. Default `DEFAULT_CARRY`. */
  readonly carry?: number
  /** Default 'average'. */
  readonly predictWith?: PredictWith
  /** State directory. Default: none, and everything is forgotten at the end. */
  readonly dir?: string
  /** Multiaddresses to listen on. Default: all interfaces, a free port. */
  readonly listen?: readonly string[]
  /** Multiaddresses of peers to connect to. */
  readonly peers?: readonly string[]
  /** Most tree neighbours. Default 4. */
  readonly degree?: number
  readonly mdns?: boolean
  /** Whether to relay between peers that cannot reach each other directly. Default: false. */
  readonly relay?: boolean
  /** Content of a network key file. */
  readonly networkKey?: Uint8Array
  /** Ids of the only peers to talk to. */
  readonly allow?: ReadonlySet<string>
  /** Identity for a peer without a state directory, or for a new one. Default: a new one. */
  readonly identity?: IdentityKey
  /** What the pages of the network call it, 40 characters at most. Default: its id. */
  readonly name?: string
  /** Modules with own losses, rules, layers and readers, of which `spec.plugins` holds what `loadPlugins` returned. */
  readonly plugins?: readonly string[]
  readonly log: Log
}

export const DEFAULT_PERIOD_MS = 100
/**
 * S when nothing else is asked for, in periods. Measured (`docs/benchmarks.md`): enough for a tree of diameter 10, and no
 * worse than less for five peers.
 */
export const DEFAULT_CARRY = 16
/** Above that many parameters segments of sums would fill the memory, and gradients are not carried over by default. */
export const CARRY_PARAMETERS = 2_000_000
export const DEFAULT_DEGREE = 4

/** A neighbour in the tree came or went. */
export interface NeighbourChange {
  /** Its peer id. */
  readonly peer: string
  readonly isLinked: boolean
  /** Why it went. */
  readonly reason?: string
}

/** Frames over tree edges. */
export interface Traffic {
  readonly messages: number
  readonly bytes: number
}

/** What a peer says of itself. Losses in nats; see `docs/protocol.md` for the rest. */
export interface PeerStatus {
  readonly id: string
  /** Number of this run: 1 at first, one more at each start from the same state directory. */
  readonly incarnation: number
  readonly inputs: number
  readonly updates: number
  readonly averageLoss: number
  readonly accuracy?: number
  readonly neighbours: readonly string[]
  readonly predictor: PredictorId
  readonly adopted: number
  readonly discarded: number
  readonly skipped: number
  /** Whether the stream has come to its end. */
  readonly ended: boolean
  readonly received: Traffic
  readonly sent: Traffic
}

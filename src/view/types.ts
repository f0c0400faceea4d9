/** What is known of a network, as plain data: it goes to the page as JSON. Times are ms of the knower's clock since the epoch. */
import type { NetworkEvent } from './event-log.js'
import type { NetworkStatus } from './status.js'

/** Names that an owner may give a peer: printable characters, without controls that change the text direction. */
export const NAME_PATTERN = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]{1,40}$/u

/** One peer, by its last status. */
export interface PeerRow extends Omit<NetworkStatus, 'version' | 'interval' | 'trail' | 'leaving'> {
  readonly id: string
  readonly firstSeen: number
  readonly lastSeen: number
  /** Whether its statuses come as regularly as it promised. */
  readonly alive: boolean
  /** It said goodbye. */
  readonly left: boolean
  /** Peers with one number follow one predictor; stable while the peers that have it last. */
  readonly group: number
}

/** Progressive loss (nats) after `inputs` inputs, at a time. */
export type CurvePoint = readonly [inputs: number, at: number, loss: number]

/** What the same inputs come to without a network, where somebody knows it. */
export interface Reference {
  readonly name: 'serial' | 'isolated'
  /** Inputs of the network per peer, and progressive loss in nats. */
  readonly points: readonly (readonly [inputs: number, loss: number])[]
}

export interface NetworkSnapshot {
  readonly at: number
  /** Whose knowledge it is; undefined for an onlooker's. */
  readonly self?: string
  readonly peers: readonly PeerRow[]
  /** Oldest first. */
  readonly events: readonly NetworkEvent[]
  /** By peer id, of the first `CURVES_SHOWN` peers. */
  readonly curves: Readonly<Record<string, readonly CurvePoint[]>>
  readonly references: readonly Reference[]
}

/** What has changed since the last update or snapshot. */
export interface NetworkUpdate {
  readonly at: number
  readonly peers: readonly PeerRow[]
  /** Ids of peers that are forgotten. */
  readonly gone: readonly string[]
  readonly events: readonly NetworkEvent[]
  /** All of them, where they are new. */
  readonly references?: readonly Reference[]
}

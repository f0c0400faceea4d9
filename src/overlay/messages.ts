/**
 * Messages between overlay nodes over an edge session, and beacons published by roots. Plain values; `codec.ts` defines their
 * byte layout.
 */
import type { Contact, Label } from './label.js'
import type { Transports } from './reachability.js'

/** Why a JOIN was refused: the acceptor's label is not older, its tree is too deep, or its machine is overloaded. */
export const REFUSE_REASONS = ['younger', 'depth', 'busy'] as const
export type RefuseReason = (typeof REFUSE_REASONS)[number]

/** Why a node ends a session. */
export const BYE_REASONS = [
  'leaving',
  'silent',
  'moving',
  'replaced',
  'violation',
  'timeout',
  'depth',
  'unneeded'
] as const
export type ByeReason = (typeof BYE_REASONS)[number]

/** A peer that can accept a child, and its distance in edges below the reporting node (0: the node itself). */
export interface Slot {
  readonly distance: number
  readonly contact: Contact
}

/** Summary of a subtree for the parent. `height` is the number of edges to the deepest descendant. */
export interface Summary {
  readonly size: number
  readonly height: number
  readonly slot: Slot | undefined
}

/** A root asks to become a child. `label.root` is the sender. */
export interface Join {
  readonly kind: 'join'
  readonly label: Label
  readonly addresses: readonly string[]
  /** Transports that the sender can dial. @default TCP and WebSockets */
  readonly dials?: Transports
}

/** The sender is now the receiver's parent. `path` runs from the root to the sender, both included. */
export interface Accept {
  readonly kind: 'accept'
  readonly label: Label
  readonly path: readonly Contact[]
}

export interface Redirect {
  readonly kind: 'redirect'
  readonly contact: Contact
}

/** `label` is the refuser's and `rootAddresses` are those of `label.root`, which the refused peer may ask next. */
export interface Refuse {
  readonly kind: 'refuse'
  readonly reason: RefuseReason
  readonly label: Label
  readonly rootAddresses: readonly string[]
}

/** The tree fragment joined an older one: adopt this label and path. */
export interface Relabel {
  readonly kind: 'label'
  readonly label: Label
  readonly path: readonly Contact[]
}

/** The tree fragment lost its parent: adopt this younger label and path, freeze the subtree, answer FROZEN. */
export interface Freeze {
  readonly kind: 'freeze'
  readonly label: Label
  readonly path: readonly Contact[]
}

/** The sender's whole subtree has adopted `label`. */
export interface Frozen {
  readonly kind: 'frozen'
  readonly label: Label
}

/** Heartbeat to the parent. */
export interface Up {
  readonly kind: 'up'
  readonly summary: Summary
}

/** Heartbeat to a child. */
export interface Heartbeat {
  readonly kind: 'heartbeat'
}

/** A slot for some node of a deep branch. Depths are absolute (the root has depth 0). */
export interface Offer {
  readonly kind: 'offer'
  readonly contact: Contact
  readonly slotDepth: number
  readonly deepest: number
}

export interface Bye {
  readonly kind: 'bye'
  readonly reason: ByeReason
}

export type OverlayMessage =
  | Join
  | Accept
  | Redirect
  | Refuse
  | Relabel
  | Freeze
  | Frozen
  | Up
  | Heartbeat
  | Offer
  | Bye

/** Published by the root of a tree fragment. The transport must authenticate `label.root` as its publisher. */
export interface Beacon {
  readonly label: Label
  readonly addresses: readonly string[]
}

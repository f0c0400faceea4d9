/**
 * What two overlay nodes say to each other over an edge session, and what roots publish by gossip. Plain values: the
 * byte layout is the codec's affair.
 */
import type { Contact, Label } from './label.js'

/** Why a JOIN was refused: the acceptor's label is not older, or its tree is too deep. */
export const REFUSE_REASONS = ['younger', 'depth'] as const
export type RefuseReason = (typeof REFUSE_REASONS)[number]

/** Why an end gives a session up. */
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

/** Who can still take a child, and how many edges below the node that reports it (0: the node itself). */
export interface Slot {
  readonly distance: number
  readonly contact: Contact
}

/** What a node tells its parent about its subtree. `height` counts edges to the deepest descendant. */
export interface Summary {
  readonly size: number
  readonly height: number
  readonly slot: Slot | undefined
}

/** Root asks to become a child. `label.root` is the sender. */
export interface Join {
  readonly kind: 'join'
  readonly label: Label
  readonly addresses: readonly string[]
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

/** `label` is the refuser's, and `rootAddresses` those of `label.root`, so that the refused peer learns whom to talk to. */
export interface Refuse {
  readonly kind: 'refuse'
  readonly reason: RefuseReason
  readonly label: Label
  readonly rootAddresses: readonly string[]
}

/** The fragment joined an older one: take this label and path. */
export interface Relabel {
  readonly kind: 'label'
  readonly label: Label
  readonly path: readonly Contact[]
}

/** The fragment lost its parent: take this younger label and path, freeze the subtree, answer FROZEN. */
export interface Freeze {
  readonly kind: 'freeze'
  readonly label: Label
  readonly path: readonly Contact[]
}

/** The whole subtree of the sender has taken `label`. */
export interface Frozen {
  readonly kind: 'frozen'
  readonly label: Label
}

/** Heartbeat upwards. */
export interface Up {
  readonly kind: 'up'
  readonly summary: Summary
}

/** Heartbeat downwards. */
export interface Heartbeat {
  readonly kind: 'heartbeat'
}

/** An ancestor knows a shallower slot for some node of a deep branch. Depths are absolute (the root has depth 0). */
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

/** Published by the root of a fragment. The transport must make sure that it comes from `label.root`. */
export interface Beacon {
  readonly label: Label
  readonly addresses: readonly string[]
}

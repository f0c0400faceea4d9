/**
 * Fragment labels. Every tree fragment is named after its root and the time at which it became one; the total order on
 * these names decides which of two fragments joins the other, and is what keeps the overlay free of cycles.
 */

/** A peer's identity: printable ASCII, 1 to 128 characters, ordered by `<` (for example a base58 libp2p peer id). */
export type PeerKey = string

/** A peer and the opaque addresses at which it may be dialled (possibly none: the driver may know some). */
export interface Contact {
  readonly peer: PeerKey
  readonly addresses: readonly string[]
}

/** Name of a fragment: when its root became root (whole ms since the Unix epoch, by the root's clock), and which peer. */
export interface Label {
  readonly createdAt: number
  readonly root: PeerKey
}

/** Largest `createdAt` on the wire and in memory. */
export const MAX_CREATED_AT = Number.MAX_SAFE_INTEGER

/** Whether `a` is strictly older than `b`, that is, whether fragment `b` may join fragment `a`. */
export function isOlder(a: Label, b: Label): boolean {
  return a.createdAt === b.createdAt ? a.root < b.root : a.createdAt < b.createdAt
}

export function sameLabel(a: Label, b: Label): boolean {
  return a.createdAt === b.createdAt && a.root === b.root
}

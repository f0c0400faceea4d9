/**
 * Labels of tree fragments. A tree fragment is identified by its root and the time at which that peer became a root. The total
 * order of labels decides which of two fragments joins the other, which keeps the overlay acyclic.
 */

/** A peer's identity: printable ASCII, 1 to 128 characters, ordered by `<` (for example a base58 libp2p peer id). */
export type PeerKey = string

/** A peer and its dialable addresses, opaque to the overlay; may be empty if the driver knows the addresses. */
export interface Contact {
  readonly peer: PeerKey
  readonly addresses: readonly string[]
}

/** Label of a tree fragment: when its root became a root (whole ms since the Unix epoch, by the root's clock), and the root. */
export interface Label {
  readonly createdAt: number
  readonly root: PeerKey
}

/** Maximum `createdAt`. */
export const MAX_CREATED_AT = Number.MAX_SAFE_INTEGER

/** Whether `a` is strictly older than `b`, so that tree fragment `b` may join tree fragment `a`. */
export function isOlder(a: Label, b: Label): boolean {
  return a.createdAt === b.createdAt ? a.root < b.root : a.createdAt < b.createdAt
}

export function sameLabel(a: Label, b: Label): boolean {
  return a.createdAt === b.createdAt && a.root === b.root
}

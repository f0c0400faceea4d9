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

/** A set of transports: the sum of their bits, 0 to 255. */
export type Transports = number

/**
 * Who can dial whom. A peer is redirected only to peers that it can dial. Peers under Node.js dial TCP and WebSockets; a tab of a
 * browser dials WebSockets, and WebRTC if the other end is a tab too.
 */
export const TRANSPORT_TCP = 1
export const TRANSPORT_WEBSOCKET = 2
export const TRANSPORT_WEBRTC = 4
/** What peers dial unless their JOIN says otherwise. A peer without an address for one of these is a _tab_. */
export const BASE_TRANSPORTS: Transports = TRANSPORT_TCP | TRANSPORT_WEBSOCKET
/** Every transport, including those that are not defined yet. */
export const ALL_TRANSPORTS = 255

/** The transports by which addresses can be dialled; 0 if there is none. */
export type TransportsOf = (addresses: readonly string[]) => Transports

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

/**
 * Messages between overlay nodes over an edge session, and beacons published by roots. Plain values; `codec.ts` defines their
 * byte layout.
 */
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
interface Up {
  readonly kind: 'up'
  readonly summary: Summary
}

/** Heartbeat to a child. */
interface Heartbeat {
  readonly kind: 'heartbeat'
}

/** A slot for some node of a deep branch. Depths are absolute (the root has depth 0). */
export interface Offer {
  readonly kind: 'offer'
  readonly contact: Contact
  readonly slotDepth: number
  readonly deepest: number
}

interface Bye {
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
  /** Time in ms until the next one, ± 50 %. */
  readonly interval: number
}

/** A session (FIFO, bidirectional stream to an authenticated peer), numbered by the node at this end. */
export type SessionId = number

/** Why an edge ended: the reason of a BYE from either end, the end of its session, or a ban. */
export type EdgeEnd = ByeReason | 'closed' | 'banned'

/**
 * Effects that an overlay node requests from its driver. The node performs no I/O: after each event the driver takes the
 * effects and executes them in order.
 */
export type Effect =
  /** Dial the peer. The driver calls `opened`, or `closed` if dialling fails. */
  | {
      readonly kind: 'open'
      readonly session: SessionId
      readonly peer: PeerKey
      readonly addresses: readonly string[]
    }
  | { readonly kind: 'send'; readonly session: SessionId; readonly message: OverlayMessage }
  /** Send what is queued, then close (or stop dialling). The node has dropped the session. */
  | { readonly kind: 'close'; readonly session: SessionId; readonly reason: string }
  /** Publish by gossip. */
  | { readonly kind: 'beacon'; readonly beacon: Beacon }
  /** This end holds the session as a tree edge. The edge counts while both ends hold it. */
  | { readonly kind: 'edge-up'; readonly session: SessionId; readonly peer: PeerKey }
  | { readonly kind: 'edge-down'; readonly session: SessionId; readonly peer: PeerKey; readonly reason: EdgeEnd }

/**
 * Effects that an overlay node requests from its driver. The node performs no I/O: after each event the driver takes the
 * effects and executes them in order.
 */
import type { PeerKey } from './label.js'
import type { Beacon, ByeReason, OverlayMessage } from './messages.js'

/** A session (FIFO, bidirectional stream to an authenticated peer), numbered by the node at this end. */
export type SessionId = number

/** Why an edge ended: the reason of a BYE from either end, the end of its session, or a ban. */
export type EdgeEnd = ByeReason | 'closed' | 'banned'

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

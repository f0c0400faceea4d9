/**
 * What an overlay node asks of the driver that runs it. The node never acts itself: after every event the driver takes
 * the effects and carries them out in order.
 */
import type { PeerKey } from './label.js'
import type { Beacon, ByeReason, OverlayMessage } from './messages.js'

/** One session (a FIFO, bidirectional stream to one authenticated peer), numbered by the node that holds this end. */
export type SessionId = number

/** Why an edge ended, as seen from here: a goodbye of either side, or the session itself ended, or a penalty. */
export type EdgeEnd = ByeReason | 'closed' | 'banned'

export type Effect =
  /** Dial the peer; answer with `opened`, or with `closed` if that fails. */
  | {
      readonly kind: 'open'
      readonly session: SessionId
      readonly peer: PeerKey
      readonly addresses: readonly string[]
    }
  | { readonly kind: 'send'; readonly session: SessionId; readonly message: OverlayMessage }
  /** Send what is queued, then close (or stop dialling). The node has forgotten the session. */
  | { readonly kind: 'close'; readonly session: SessionId; readonly reason: string }
  /** Publish to all peers. */
  | { readonly kind: 'beacon'; readonly beacon: Beacon }
  /** This end now holds the session as a tree edge. It counts only while the other end does too. */
  | { readonly kind: 'edge-up'; readonly session: SessionId; readonly peer: PeerKey }
  | { readonly kind: 'edge-down'; readonly session: SessionId; readonly peer: PeerKey; readonly reason: EdgeEnd }

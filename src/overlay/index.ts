/**
 * The acyclic, degree-bounded overlay, used by the peer and the simulator. Terms: docs/glossary.md.
 */

export {
  decodeBeacon,
  decodeMessage,
  encodeBeacon,
  encodeMessage,
  MAX_OVERLAY_FRAME,
  OVERLAY_VERSION,
  OverlayMessageError
} from './codec.js'
export type { Beacon, EdgeEnd, Effect, OverlayMessage, SessionId } from './messages.js'
export {
  BASE_TRANSPORTS,
  type Contact,
  isOlder,
  type Label,
  type PeerKey,
  sameLabel,
  TRANSPORT_TCP,
  TRANSPORT_WEBRTC,
  TRANSPORT_WEBSOCKET,
  type Transports,
  type TransportsOf
} from './messages.js'
export { OverlayNode, type OverlayView } from './node.js'
export { DEFAULT_LIMITS, DEFAULT_TIMERS, OverlayOptionError, type OverlayOptions } from './options.js'
export type { Neighbour } from './sessions.js'

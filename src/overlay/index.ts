/**
 * The acyclic, degree-bounded overlay, used by the peer and the simulator. Terms: docs/glossary.md.
 */
export {
  decodeBeacon,
  decodeMessage,
  encodeBeacon,
  encodeMessage,
  MAX_OVERLAY_FRAME,
  OVERLAY_VERSION
} from './codec.js'
export type { EdgeEnd, Effect, SessionId } from './effects.js'
export { type Contact, isOlder, type Label, type PeerKey, sameLabel } from './label.js'
export type { Beacon, OverlayMessage } from './messages.js'
export { OverlayNode, type OverlayView } from './node.js'
export { DEFAULT_LIMITS, DEFAULT_TIMERS, OverlayOptionError, type OverlayOptions } from './options.js'
export {
  BASE_TRANSPORTS,
  TRANSPORT_TCP,
  TRANSPORT_WEBRTC,
  TRANSPORT_WEBSOCKET,
  type Transports,
  type TransportsOf
} from './reachability.js'
export type { Neighbour } from './sessions.js'
export { OverlayMessageError } from './wire.js'

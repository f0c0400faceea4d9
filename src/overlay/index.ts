/**
 * The acyclic, degree-bounded overlay, used by the peer and the simulator. Terms: docs/reference/glossary.md.
 */

export {
  decodeBeacon,
  decodeMessage,
  encodeBeacon,
  encodeMessage
} from './codec.js'
export type { Effect, OverlayMessage, SessionId } from './messages.js'
export {
  BASE_TRANSPORTS,
  type Contact,
  isOlder,
  type Label,
  sameLabel,
  TRANSPORT_TCP,
  TRANSPORT_WEBRTC,
  TRANSPORT_WEBSOCKET,
  type Transports,
  type TransportsOf
} from './messages.js'
export { OverlayNode, type OverlayView } from './node.js'

/** The network view: what a peer knows of all others. */
export type { EventKind, NetworkEvent } from './event-log.js'
export {
  decodeStatus,
  encodeStatus,
  MAX_INTERVAL_MS,
  MAX_NEIGHBOURS,
  NAME_PATTERN,
  type NetworkStatus,
  StatusError
} from './status.js'
export { type Held, Trail } from './trail.js'
export type { CurvePoint, NetworkSnapshot, NetworkUpdate, PeerRow, Reference } from './types.js'
export { NetworkView } from './view.js'

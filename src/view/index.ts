/** The network view: the state of all peers as known to one of them. Terms: docs/glossary.md. */
export { COMMON_MS } from './drift-monitor.js'
export type { EventKind, NetworkEvent } from './event-log.js'
export { NAME_PATTERN } from './name.js'
export { type HeldPredictor, RecentDigests } from './recent-digests.js'
export {
  decodeStatus,
  encodeStatus,
  MAX_INTERVAL_MS,
  MAX_NEIGHBOURS,
  type NetworkStatus,
  StatusError
} from './status.js'
export type { CurvePoint, NetworkSnapshot, NetworkUpdate, PeerRow, Reference } from './types.js'
export { DUPLICATED, NetworkView } from './view.js'

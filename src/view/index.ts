/** The network view: the state of all peers as known to one of them. Terms: docs/glossary.md. */
export { type Aggregate, aggregateOf, sampleHeld } from './aggregate.js'
export { COMMON_MS } from './drift-monitor.js'
export type { EventKind, NetworkEvent } from './event-log.js'
export { NAME_PATTERN } from './name.js'
export { type HeldPredictor, HeldWindow, RecentDigests } from './recent-digests.js'
export {
  decodeStatus,
  MAX_INTERVAL_MS,
  MAX_NEIGHBOURS,
  type NetworkStatus,
  StatusError
} from './status.js'
export { StatusCodec } from './status-codec.js'
export type { Query, StatusMessage, Verify } from './status-message.js'
export { type Answer, type OwnStatus, StatusTree } from './status-tree.js'
export { decodeRun, encodeRun, type RunMessage } from './twins.js'
export type {
  CurvePoint,
  FoundPeer,
  NetworkSnapshot,
  NetworkTotals,
  NetworkUpdate,
  PeerRow,
  Reference,
  Subtree
} from './types.js'
export { DUPLICATED, NetworkView } from './view.js'
export { windowName } from './window-name.js'

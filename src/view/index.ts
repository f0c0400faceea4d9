/** The network view: the state of all peers as known to one of them. Terms: docs/reference/glossary.md. */

export { aggregateOf, type HeldPredictor, HeldWindow, RecentDigests, sampleHeld } from './aggregate.js'
export { COMMON_MS } from './detectors.js'
export { NAME_PATTERN, windowName } from './names.js'
export { networkTotals, peerRow } from './rows.js'
export { decodeStatus, MAX_NEIGHBOURS, type NetworkStatus, StatusError } from './status.js'
export type { Query, StatusMessage, Verify } from './status-message.js'
export { StatusCodec } from './status-message.js'
export { type Answer, type OwnStatus, StatusTree } from './status-tree.js'
export { decodeRun, encodeRun, type RunMessage } from './twins.js'
export type { FoundPeer, NetworkSnapshot, NetworkTotals, NetworkUpdate, PeerRow, Reference, Subtree } from './types.js'
export { DUPLICATED, NetworkView } from './view.js'

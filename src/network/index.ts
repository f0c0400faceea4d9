/** The network module's interface for the peer and the commands. Terms: docs/glossary.md. */
export { diagnose } from './diagnosis.js'
export { DamagedKeyError, IncompatiblePeerError, NetworkError, UnreachablePeerError } from './errors.js'
export {
  decodeIdentityKey,
  encodeIdentityKey,
  generateIdentityKey,
  generateNetworkKey,
  type IdentityKey,
  parseNetworkKey,
  parsePeerId,
  peerIdOf
} from './keys.js'
export { createNetwork, type Network } from './network.js'
export type { Log, LogLevel, NetworkOptions, PeerTarget } from './options.js'
export type { Topic } from './protocols.js'
export type { Session } from './session.js'

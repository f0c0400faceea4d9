/** The network room: what the peer and the commands use of it. */
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
export type { Session } from './session.js'
export type { Topic } from './topics.js'

/** The network module's interface for the peer and the commands. Terms: docs/reference/glossary.md. */

export { dialled } from '#transports'
export { type TransportName, transportOf } from './addresses.js'
export { Asker } from './asker.js'
export type { PeerEvent } from './connections.js'
export { decodeReferral, encodeReferral } from './connections.js'
export { diagnose } from './diagnosis.js'
export { InvitationRefusedError, UnreachablePeerError } from './errors.js'
export { inNetworkWithId } from './hello.js'
export { decodeToken, encodeToken, type MembershipRecords, NO_RECORDS, signInvitation } from './invitations.js'
export {
  decodeIdentityKey,
  encodeIdentityKey,
  generateIdentityKey,
  generateNetworkKey,
  networkIdIn,
  parseNetworkId,
  parseNetworkKey,
  parsePeerId,
  peerIdOf
} from './keys.js'
export type { Topic } from './limits.js'
export { decodeMemberRequest, decodeMembershipState, encodeMembers, exchangeMembers } from './member-requests.js'
export { Membership } from './membership.js'
export { createNetwork, type Network } from './network.js'
export type { PeerTarget } from './options.js'
export type { Session } from './session.js'
export { createSigner, isSignedBy } from './signatures.js'
export { withTimeLimit } from './time-limit.js'
export type { IdentityKey, Log, LogLevel } from './types.js'

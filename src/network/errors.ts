/**
 * Errors of the network. Each message states in one line what failed and what to do. Distinguish them by class, or by `code`
 * across threads and processes.
 */
import { CodedError } from '../base/errors.js'

/** Base class of the network's errors. `message` is one line for users. */
export abstract class NetworkError extends CodedError {}

/** A listen, announce or peer address is not a supported multiaddress. */
export class MalformedAddressError extends NetworkError {
  static override readonly code = 'ERR_MALFORMED_ADDRESS'

  constructor(readonly address: string) {
    super(
      `"${address}" is not a TCP multiaddress: write it like /ip4/192.0.2.7/tcp/4001 or /dns4/host.example/tcp/4001`
    )
  }
}

/** A string is not a network id. */
export class MalformedNetworkIdError extends NetworkError {
  static override readonly code = 'ERR_MALFORMED_NETWORK_ID'

  constructor(readonly text: string) {
    super(`"${text}" is not a network id: use 1 to 64 letters, digits, dots, dashes and underscores`)
  }
}

/** A string is not a peer id. */
export class MalformedPeerIdError extends NetworkError {
  static override readonly code = 'ERR_MALFORMED_PEER_ID'

  constructor(readonly peer: string) {
    super(`"${peer}" is not a peer id: copy it from the address that the other peer prints (it starts with 12D3Koo)`)
  }
}

/** Another process listens on the address. */
export class AddressInUseError extends NetworkError {
  static override readonly code = 'ERR_ADDRESS_IN_USE'

  constructor(readonly address: string) {
    super(`${address} is in use: stop the process that listens there, or choose another port (0 picks a free one)`)
  }
}

/** The address cannot be listened on; `reason` comes from the operating system. */
export class ListenError extends NetworkError {
  static override readonly code = 'ERR_LISTEN'

  constructor(
    readonly address: string,
    readonly reason: string
  ) {
    super(`cannot listen on ${address} (${reason}): choose an address of this machine and a port above 1023`)
  }
}

/** The relay to listen through is unreachable, is not a relay, or accepts no further peer. */
export class RelayError extends NetworkError {
  static override readonly code = 'ERR_RELAY'

  constructor(readonly address: string) {
    super(`cannot listen on ${address}: check that the relay runs with --relay and allows this peer`)
  }
}

/** An identity key or network key cannot be read. */
export class DamagedKeyError extends NetworkError {
  static override readonly code = 'ERR_DAMAGED_KEY'

  constructor(kind: 'identity' | 'network', reason: string) {
    super(`the ${kind} key is damaged (${reason}): restore the file from a copy, or make a new key with "admb keygen"`)
  }
}

/** No address of the peer answered. */
export class UnreachablePeerError extends NetworkError {
  static override readonly code = 'ERR_UNREACHABLE_PEER'

  constructor(
    readonly target: string,
    readonly reason: string
  ) {
    super(`cannot reach ${target} (${reason}): check the peer, its address, and firewalls on the route`)
  }
}

/** A peer answered, but not the one in the address. */
export class UnexpectedPeerError extends NetworkError {
  static override readonly code = 'ERR_UNEXPECTED_PEER'

  constructor(readonly target: string) {
    super(
      `another peer answers at ${target}: its id differs from the one in the address; copy the address it prints at start`
    )
  }
}

/** The connection ended before encryption: the network keys differ, or the other end accepts no further connection. */
export class NetworkKeyMismatchError extends NetworkError {
  static override readonly code = 'ERR_NETWORK_KEY_MISMATCH'

  constructor(readonly target: string) {
    super(
      `the connection ended before encryption (${target}): give both ends the same --network-key, check that an admb peer listens there, or wait if it has too many connections`
    )
  }
}

/** The other end closed the connection after this peer had identified itself. */
export class PeerRefusedError extends NetworkError {
  static override readonly code = 'ERR_PEER_REFUSED'

  constructor(
    readonly target: string,
    self: string
  ) {
    super(`${target} refused this peer: add ${self} to its allow-list, or wait if it is full or has banned this peer`)
  }
}

/** A text is not an invitation, or is damaged. */
export class MalformedInvitationError extends NetworkError {
  static override readonly code = 'ERR_MALFORMED_INVITATION'

  constructor() {
    super('this is not a whole invitation: copy all of the text that "admb invite" has printed')
  }
}

/** The other end does not admit this peer with its invitation. `reason` comes from there. */
export class InvitationRefusedError extends NetworkError {
  static override readonly code = 'ERR_INVITATION_REFUSED'

  constructor(
    readonly target: string,
    readonly reason: string
  ) {
    super(`${target} refused the invitation (${reason}): ask a member of the network for another one`)
  }
}

/** This peer denies the other one: not on the allow-list, blocked, or banned. */
export class PeerDeniedError extends NetworkError {
  static override readonly code = 'ERR_PEER_DENIED'

  constructor(
    readonly peer: string,
    readonly reason: string
  ) {
    super(`peer ${peer} is denied (${reason})`)
  }
}

/** The other end supports libp2p but not this protocol. */
export class NotAdmbPeerError extends NetworkError {
  static override readonly code = 'ERR_NOT_ADMB_PEER'

  constructor(
    readonly target: string,
    protocol: string
  ) {
    super(
      `${target} does not support ${protocol}: it is not an admb peer or has another version; run the same version there`
    )
  }
}

/** Both ends are admb peers, but their learning tasks differ. */
export class IncompatiblePeerError extends NetworkError {
  static override readonly code = 'ERR_INCOMPATIBLE_PEER'

  /** `theirs` and `ours` are undefined if that end has no such field. */
  constructor(
    readonly peer: string,
    readonly field: string,
    readonly theirs: string | undefined,
    readonly ours: string | undefined
  ) {
    super(`peer ${peer} has ${field} ${theirs || '(none)'}, this peer ${ours || '(none)'}: ${remedyFor(field)}`)
  }
}

function remedyFor(field: string): string {
  if (field === 'protocol') return 'run the same version of admb on both'
  if (field === 'network-id') return 'to make them one network, start both with the same --network-id'
  // What peers infer from different files may differ.
  const option = field === 'columns' || field === 'class-names' ? 'schema' : field
  return `start both with the same --${option}`
}

/** The other end violated the protocol. Its session is closed. */
export class ProtocolViolationError extends NetworkError {
  static override readonly code = 'ERR_PROTOCOL_VIOLATION'
}

/** The session ended before the operation completed. */
export class SessionClosedError extends NetworkError {
  static override readonly code = 'ERR_SESSION_CLOSED'

  constructor(
    readonly peer: string,
    readonly reason: string
  ) {
    super(`the session with peer ${peer} ended: ${reason}`)
  }
}

/** Reason that a peer gives for a request without an answer. */
export const nothingFound = 'nothing found'

/** A fetch failed. */
export class FetchError extends NetworkError {
  static override readonly code = 'ERR_FETCH'

  constructor(
    readonly peer: string,
    readonly reason: string
  ) {
    super(`fetch from peer ${peer} failed: ${reason}`)
  }
}

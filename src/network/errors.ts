/**
 * The errors that the network shows to its users: each names what failed and says, in one line, what to do about it. They
 * are told apart by class, or by `code` where a class cannot be compared (across threads and processes).
 */
import { CodedError } from '../base/errors.js'

/** What all errors of this folder have in common. `message` is one line, meant to be shown as it is. */
export abstract class NetworkError extends CodedError {}

/** A listen, announce or peer address is no multiaddress that this program can use. */
export class MalformedAddressError extends NetworkError {
  static override readonly code = 'ERR_MALFORMED_ADDRESS'

  constructor(readonly address: string) {
    super(`"${address}" is no TCP multiaddress: write it like /ip4/192.0.2.7/tcp/4001 or /dns4/host.example/tcp/4001`)
  }
}

/** A string given as a peer id is none. */
export class MalformedPeerIdError extends NetworkError {
  static override readonly code = 'ERR_MALFORMED_PEER_ID'

  constructor(readonly peer: string) {
    super(`"${peer}" is no peer id: copy it from the line that the other peer prints (it starts with 12D3Koo)`)
  }
}

/** The address to listen on is taken by another process. */
export class AddressInUseError extends NetworkError {
  static override readonly code = 'ERR_ADDRESS_IN_USE'

  constructor(readonly address: string) {
    super(`${address} is in use: stop the process that listens there, or choose another port (0 picks a free one)`)
  }
}

/** The address to listen on cannot be used for another reason: `reason` is the operating system's. */
export class ListenError extends NetworkError {
  static override readonly code = 'ERR_LISTEN'

  constructor(
    readonly address: string,
    readonly reason: string
  ) {
    super(`cannot listen on ${address} (${reason}): choose an address of this machine and a port above 1023`)
  }
}

/** The relay to listen through cannot be reached, is none, or takes no further peer. */
export class RelayError extends NetworkError {
  static override readonly code = 'ERR_RELAY'

  constructor(readonly address: string) {
    super(`cannot listen on ${address}: check that its relay runs, was started with --relay, and lets this peer in`)
  }
}

/** An identity or network key cannot be read. */
export class DamagedKeyError extends NetworkError {
  static override readonly code = 'ERR_DAMAGED_KEY'

  constructor(kind: 'identity' | 'network', reason: string) {
    super(`the ${kind} key is damaged (${reason}): restore the file from a copy, or make a new key with "admb keygen"`)
  }
}

/** Nobody answered at any of the addresses. */
export class UnreachablePeerError extends NetworkError {
  static override readonly code = 'ERR_UNREACHABLE_PEER'

  constructor(
    readonly target: string,
    readonly reason: string
  ) {
    super(`cannot reach ${target} (${reason}): check that the peer runs, its address, and any firewall between`)
  }
}

/** Somebody answered, but it was not the peer named in the address. */
export class UnexpectedPeerError extends NetworkError {
  static override readonly code = 'ERR_UNEXPECTED_PEER'

  constructor(readonly target: string) {
    super(`another peer answers at ${target}: its id is not the one in the address; copy the line it prints at start`)
  }
}

/** The connection broke before encryption: what a differing network key looks like from here. */
export class NetworkKeyMismatchError extends NetworkError {
  static override readonly code = 'ERR_NETWORK_KEY_MISMATCH'

  constructor(readonly target: string) {
    super(`the network key differs or the other end is no admb peer (${target}): give both the same --network-key`)
  }
}

/** The other end closed the connection after learning who we are. */
export class PeerRefusedError extends NetworkError {
  static override readonly code = 'ERR_PEER_REFUSED'

  constructor(
    readonly target: string,
    self: string
  ) {
    super(
      `${target} refused this peer: have ${self} put on its allow-list, or wait if it is full or has banned this peer`
    )
  }
}

/** This end does not want the peer: not on the allow-list, blocked, or banned. */
export class PeerDeniedError extends NetworkError {
  static override readonly code = 'ERR_PEER_DENIED'

  constructor(
    readonly peer: string,
    readonly reason: string
  ) {
    super(`peer ${peer} is not wanted here (${reason})`)
  }
}

/** The other end speaks libp2p but not this protocol. */
export class NotAdmbPeerError extends NetworkError {
  static override readonly code = 'ERR_NOT_ADMB_PEER'

  constructor(
    readonly target: string,
    protocol: string
  ) {
    super(
      `${target} does not speak ${protocol}: it is no admb peer, or one of another version; run the same version there`
    )
  }
}

/** Both ends are admb peers, but they would not learn the same predictor. */
export class IncompatiblePeerError extends NetworkError {
  static override readonly code = 'ERR_INCOMPATIBLE_PEER'

  /** `theirs` and `ours` are undefined where that end has no such field. */
  constructor(
    readonly peer: string,
    readonly field: string,
    readonly theirs: string | undefined,
    readonly ours: string | undefined
  ) {
    const remedy = field === 'protocol' ? 'run the same version of admb on both' : `start both with the same --${field}`
    super(`peer ${peer} has ${field} ${theirs ?? '(none)'}, this peer ${ours ?? '(none)'}: ${remedy}`)
  }
}

/** The other end sent what the protocol forbids. It costs the session. */
export class ProtocolViolationError extends NetworkError {
  static override readonly code = 'ERR_PROTOCOL_VIOLATION'
}

/** The session ended before the operation did. */
export class SessionClosedError extends NetworkError {
  static override readonly code = 'ERR_SESSION_CLOSED'

  constructor(
    readonly peer: string,
    readonly reason: string
  ) {
    super(`the session with peer ${peer} ended: ${reason}`)
  }
}

/** A fetch got no answer that could be used. */
export class FetchError extends NetworkError {
  static override readonly code = 'ERR_FETCH'

  constructor(
    readonly peer: string,
    readonly reason: string
  ) {
    super(`peer ${peer} did not give what was asked for: ${reason}`)
  }
}

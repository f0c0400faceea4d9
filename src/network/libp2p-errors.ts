/** What libp2p throws at listening and dialling, in words that tell a user what to do. */
import {
  AddressInUseError,
  ListenError,
  type NetworkError,
  NetworkKeyMismatchError,
  NotAdmbPeerError,
  PeerRefusedError,
  RelayError,
  UnexpectedPeerError,
  UnreachablePeerError
} from './errors.js'
import { protectionFailed } from './protector.js'

/** libp2p lists the failures of all addresses in one message, each with its stack. */
export function explainListen(error: Error, addresses: readonly string[]): Error {
  const failure = /(?:^|\n)\s*(\/\S+): (?:Error: )?listen (E[A-Z]+)/.exec(error.message)
  const target = failure?.[1] ?? addresses.join(', ')
  if (failure?.[2] === 'EADDRINUSE') return new AddressInUseError(target)
  if (failure !== null) return new ListenError(target, failure[2])
  if (error.name !== 'UnsupportedListenAddressesError') return error
  const relayed = addresses.find(address => address.includes('/p2p-circuit'))
  return relayed === undefined ? new ListenError(target, 'no TCP address') : new RelayError(relayed)
}

/**
 * @param target what was dialled, for the message
 * @param self this peer's id
 */
export function explainDial(error: Error, target: string, self: string): NetworkError {
  const causes = error instanceof AggregateError ? (error.errors as Error[]) : [error]
  // With several addresses, the furthest attempt tells the most.
  if (causes.some(isWrongPeer)) return new UnexpectedPeerError(target)
  const names = new Set(causes.map(cause => cause.name))
  if (names.has('MuxerUnavailableError') || names.has('ConnectionClosedError')) {
    return new PeerRefusedError(target, self)
  }
  const code = causes.map(cause => (cause as NodeJS.ErrnoException).code).find(code => code !== undefined)
  // Connected, and then reset or silent before or during encryption: what the ends said to each other made no sense to them.
  if (names.has('EncryptionFailedError') || names.has(protectionFailed) || code === 'ECONNRESET') {
    return new NetworkKeyMismatchError(target)
  }
  if (code === 'ECONNREFUSED') return new UnreachablePeerError(target, 'nobody listens there')
  if (names.has('TimeoutError') || names.has('AbortError')) return new UnreachablePeerError(target, 'no answer in time')
  return new UnreachablePeerError(target, code ?? causes[0].message.split('\n')[0])
}

/** As `explainDial`, for opening a stream on a connection that this end took for open. */
export function explainStream(
  error: Error,
  timedOut: boolean,
  target: string,
  self: string,
  protocol: string
): NetworkError {
  if (error.name === 'UnsupportedProtocolError') return new NotAdmbPeerError(target, protocol)
  if (timedOut) return new UnreachablePeerError(target, 'no answer in time')
  return new PeerRefusedError(target, self)
}

function isWrongPeer(error: Error): boolean {
  // The encrypter's class is lost on the way (libp2p rethrows its message only).
  return error.name === 'UnexpectedPeerError' || /remote identity key/.test(error.message)
}

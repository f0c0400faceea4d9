/** What libp2p throws at listening and dialling, in words that tell a user what to do. */
import {
  AddressInUseError,
  ListenError,
  NetworkError,
  NetworkKeyMismatchError,
  NotAdmbPeerError,
  PeerRefusedError,
  UnexpectedPeerError,
  UnreachablePeerError
} from './errors.js'

/** libp2p lists the failures of all addresses in one message, each with its stack. */
export function explainListen(error: Error, addresses: readonly string[]): Error {
  const failure = /(?:^|\n)\s*(\/\S+): (?:Error: )?listen (E[A-Z]+)/.exec(error.message)
  const target = failure?.[1] ?? addresses.join(', ')
  if (failure?.[2] === 'EADDRINUSE') return new AddressInUseError(target)
  if (failure !== null) return new ListenError(target, failure[2])
  return error.name === 'UnsupportedListenAddressesError' ? new ListenError(target, 'no TCP address') : error
}

export interface DialContext {
  /** What was dialled: a peer id or addresses. */
  readonly target: string
  /** This peer's id. */
  readonly self: string
  readonly protocol: string
}

/** @returns an error of this folder, or the one given if it is the caller's own abort or a bug */
export function explainDial(error: Error, context: DialContext): Error {
  if (error instanceof NetworkError) return error
  const { target } = context
  const causes = error instanceof AggregateError ? (error.errors as Error[]) : [error]
  // With several addresses, the furthest attempt tells the most.
  if (causes.some(isWrongPeer)) return new UnexpectedPeerError(target)
  const names = new Set(causes.map(cause => cause.name))
  if (names.has('UnsupportedProtocolError')) return new NotAdmbPeerError(target, context.protocol)
  if (names.has('MuxerUnavailableError') || names.has('ConnectionClosedError') || names.has('MuxerClosedError')) {
    return new PeerRefusedError(target, context.self)
  }
  if (names.has('EncryptionFailedError')) return new NetworkKeyMismatchError(target)
  const code = causes.map(cause => (cause as NodeJS.ErrnoException).code).find(code => code !== undefined)
  if (code === 'ECONNREFUSED') return new UnreachablePeerError(target, 'nobody listens there')
  if (names.has('TimeoutError') || names.has('AbortError')) return new UnreachablePeerError(target, 'no answer in time')
  return new UnreachablePeerError(target, code ?? causes[0].message.split('\n')[0])
}

function isWrongPeer(error: Error): boolean {
  // The encrypter's class is lost on the way (libp2p rethrows its message only).
  return error.name === 'UnexpectedPeerError' || /remote identity key/.test(error.message)
}

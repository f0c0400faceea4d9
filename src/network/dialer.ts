/** Outgoing connections and streams, with access checks before dialling. Errors of libp2p become errors that say what to do. */
import './polyfill.js'
import type { Connection, PeerId, Stream } from '@libp2p/interface'
import { peerIdFromString } from '@libp2p/peer-id'
import type { Multiaddr } from '@multiformats/multiaddr'
import type { AccessControl } from './access.js'
import { parseAddress, peerOf, withPeer } from './addresses.js'
import {
  AddressInUseError,
  InvitationRefusedError,
  ListenError,
  type NetworkError,
  NetworkKeyMismatchError,
  NotAdmbPeerError,
  PeerDeniedError,
  PeerRefusedError,
  RelayError,
  UnexpectedPeerError,
  UnreachablePeerError
} from './errors.js'
import { sendRequest } from './fetch.js'
import type { Host } from './host.js'
import { parsePeerId } from './keys.js'
import { type Limits, maxControlBytes } from './limits.js'
import { invitationRefused } from './membership.js'
import type { PeerTarget } from './options.js'
import { protectionFailed } from './protector.js'
import { withTimeLimit } from './time-limit.js'

/** A peer that admits no connection closes it within this time. In ms. */
const REFUSAL_MS = 5000

export class Dialer {
  readonly #host: Host
  readonly #self: string
  readonly #access: AccessControl
  readonly #limits: Limits

  /** @param self this peer's id */
  constructor(host: Host, self: string, access: AccessControl, limits: Limits) {
    this.#host = host
    this.#self = self
    this.#access = access
    this.#limits = limits
  }

  /**
   * Returns a connection to the peer, reusing an existing one.
   * @throws NetworkError with the cause, or the signal's reason
   */
  async dial(target: PeerTarget, signal: AbortSignal): Promise<Connection> {
    const addresses = target.addresses.map(parseAddress)
    const id = target.id === undefined ? addresses.map(peerOf).find(peer => peer !== undefined) : parsePeerId(target.id)
    const name = target.addresses[0] ?? `peer ${id}`
    if (id === this.#self) throw new UnreachablePeerError(name, 'it is this peer itself')
    if (id === undefined) return this.#connect(addresses, name, signal)
    const denial = this.#access.denialReason(id)
    if (denial !== undefined) throw new PeerDeniedError(id, denial)
    const full = addresses.map(address => parseAddress(withPeer(address, id)))
    return this.#connect(full.length > 0 ? full : peerIdFromString(id), name, signal)
  }

  /** As `Network.fetch`, by a protocol. */
  async fetch(
    target: PeerTarget,
    protocol: string,
    request: Uint8Array,
    maxFrameBytes: number,
    signal: AbortSignal
  ): Promise<Uint8Array> {
    if (request.length > maxControlBytes) throw new RangeError(`requests are limited to ${maxControlBytes} bytes`)
    const connection = await this.dial(target, signal)
    const stream = await this.openStream(connection, protocol, signal)
    const peer = connection.remotePeer.toString()
    return sendRequest(stream, peer, request, maxFrameBytes, this.#limits, signal)
  }

  /**
   * Opens a stream on a connection.
   * @throws NetworkError with the cause, or the signal's reason
   */
  async openStream(connection: Connection, protocol: string, signal: AbortSignal): Promise<Stream> {
    const openedAt = Date.now()
    const openWithin = async (bounded: AbortSignal) => {
      try {
        return await connection.newStream(protocol, { signal: bounded })
      } catch (error) {
        signal.throwIfAborted()
        // The connection may be dead; abort it, so that the next dial creates a new one.
        if (bounded.aborted) connection.abort(error as Error)
        const target = `peer ${connection.remotePeer}`
        const wasAccepted = openedAt - connection.timeline.open > REFUSAL_MS
        throw explainStream(error as Error, { timedOut: bounded.aborted, wasAccepted }, target, this.#self, protocol)
      }
    }
    return withTimeLimit(this.#limits.helloTimeoutMs, [signal], openWithin)
  }

  async #connect(to: PeerId | Multiaddr[], name: string, signal: AbortSignal): Promise<Connection> {
    try {
      // libp2p limits the time per address (see `createHost`) and reports how far each attempt got.
      return await this.#host.dial(to, { signal })
    } catch (error) {
      signal.throwIfAborted()
      throw explainDial(error as Error, name, this.#self)
    }
  }
}

/** The peer accepted the connection, so there is a process, but it or this one does not get enough processor time. */
const tooSlow = 'it did not complete the handshake in time: it or this machine may be overloaded'

/** libp2p reports the failures of all addresses in one message, with stacks. */
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
 * @param target dialled address or peer, for the message
 * @param self this peer's id
 */
export function explainDial(error: Error, target: string, self: string): NetworkError {
  const causes = error instanceof AggregateError ? (error.errors as Error[]) : [error]
  // The attempt that got furthest is reported.
  if (causes.some(isWrongPeer)) return new UnexpectedPeerError(target)
  const refusal = causes.map(({ message }) => message ?? '').find(message => message.startsWith(invitationRefused))
  if (refusal !== undefined) return new InvitationRefusedError(target, refusal.slice(invitationRefused.length))
  const names = new Set(causes.map(cause => cause.name))
  if (names.has('MuxerUnavailableError') || names.has('ConnectionClosedError')) {
    return new PeerRefusedError(target, self)
  }
  // libp2p rethrows only the message of an error during encryption.
  if (causes.some(({ message }) => /\boperation was aborted\b/.test(message ?? ''))) {
    return new UnreachablePeerError(target, tooSlow)
  }
  const code = causes.map(cause => (cause as NodeJS.ErrnoException).code).find(code => code !== undefined)
  // Connected, then reset or silent before or during encryption: the ends could not decode each other's bytes.
  if (names.has('EncryptionFailedError') || names.has(protectionFailed) || code === 'ECONNRESET') {
    return new NetworkKeyMismatchError(target)
  }
  if (code === 'ECONNREFUSED') return new UnreachablePeerError(target, 'connection refused')
  if (names.has('TimeoutError') || names.has('AbortError')) return new UnreachablePeerError(target, 'no answer in time')
  // A peer in a browser, or one behind a router, may have no address.
  if (
    causes.every(({ name, message }) => name === 'NoValidAddressesError' || /no valid addresses/.test(message ?? ''))
  ) {
    return new UnreachablePeerError(target, 'it has no address that this peer can dial')
  }
  // The failure of a WebSocket in a browser is an event without a message.
  return new UnreachablePeerError(target, code ?? (causes[0].message?.split('\n')[0] || 'the connection failed'))
}

/**
 * As `explainDial`, for opening a stream on a connection.
 * @param attempt whether it took too long, and whether the other end had accepted the connection
 */
function explainStream(
  error: Error,
  { timedOut, wasAccepted }: { readonly timedOut: boolean; readonly wasAccepted: boolean },
  target: string,
  self: string,
  protocol: string
): NetworkError {
  if (error.name === 'UnsupportedProtocolError') return new NotAdmbPeerError(target, protocol)
  if (timedOut) return new UnreachablePeerError(target, 'no answer in time')
  if (wasAccepted) return new UnreachablePeerError(target, 'the connection ended')
  return new PeerRefusedError(target, self)
}

function isWrongPeer(error: Error): boolean {
  // libp2p rethrows only the message of the encrypter's error, not its class.
  return error.name === 'UnexpectedPeerError' || /remote identity key/.test(error.message ?? '')
}

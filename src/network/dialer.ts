/** Outgoing connections and streams, with access checks before and explained errors after dialling. */
import './polyfill.js'
import type { Connection, PeerId, Stream } from '@libp2p/interface'
import { peerIdFromString } from '@libp2p/peer-id'
import type { Multiaddr } from '@multiformats/multiaddr'
import type { AccessControl } from './access.js'
import { parseAddress, peerOf, withPeer } from './addresses.js'
import { PeerDeniedError, UnreachablePeerError } from './errors.js'
import type { Host } from './host.js'
import { parsePeerId } from './keys.js'
import { explainDial, explainStream } from './libp2p-errors.js'
import type { Limits } from './limits.js'
import type { PeerTarget } from './options.js'

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

  /**
   * Opens a stream on a connection.
   * @throws NetworkError with the cause, or the signal's reason
   */
  async openStream(connection: Connection, protocol: string, signal: AbortSignal): Promise<Stream> {
    const openedAt = Date.now()
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(this.#limits.helloTimeoutMs)])
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

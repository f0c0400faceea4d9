/**
 * Asks peers of a network without taking part in it: no gossip, no sessions, and the other end does not list this one. So a request
 * costs both ends little more than the handshake.
 */
import { AccessControl } from './access.js'
import { PeerTable } from './connections.js'
import { Dialer } from './dialer.js'
import { createHost, type Host } from './host.js'
import { parsePeerId, peerIdOf } from './keys.js'
import { defaultLimits, fetchProtocol, inNetwork } from './limits.js'
import type { NetworkOptions, PeerTarget } from './options.js'

type AskerOptions = Omit<NetworkOptions, 'hello' | 'listen'>

export class Asker {
  readonly #host: Host
  readonly #dialler: Dialer
  readonly #peers: PeerTable
  readonly #options: AskerOptions

  private constructor(host: Host, access: AccessControl, options: AskerOptions) {
    this.#host = host
    this.#options = options
    this.#dialler = new Dialer(host, peerIdOf(options.privateKey), access, defaultLimits)
    this.#peers = new PeerTable(host, () => undefined)
  }

  /** @throws MalformedAddressError, MalformedPeerIdError, DamagedKeyError */
  static async start(options: AskerOptions): Promise<Asker> {
    const access = new AccessControl(options.allow && new Set([...options.allow].map(parsePeerId)))
    const host = await createHost({ ...options, listen: [], tag: '', access, limits: defaultLimits, asks: true })
    const asker = new Asker(host, access, options)
    await host.start()
    return asker
  }

  /** Sends a request to a peer, as `Network.fetch` does. @throws NetworkError with the cause, or the signal's reason */
  fetch(target: PeerTarget, request: Uint8Array, signal: AbortSignal): Promise<Uint8Array> {
    const { networkId, maxFrameBytes } = this.#options
    return this.#dialler.fetch(target, inNetwork(fetchProtocol, networkId), request, maxFrameBytes, signal)
  }

  /** Sets the handler for peers that mDNS finds. */
  onDiscovered(handler: (target: PeerTarget) => void): void {
    this.#peers.onEvent(event => event.kind === 'discovered' && handler(event))
  }

  async stop(): Promise<void> {
    this.#peers.stop()
    await this.#host.stop()
  }
}

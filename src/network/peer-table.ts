/** Connected peers and their addresses, from libp2p events. */
import type { Connection, IdentifyResult, PeerId, PeerInfo } from '@libp2p/interface'
import type { Multiaddr } from '@multiformats/multiaddr'
import { withPeer } from './addresses.js'
import type { Host } from './host.js'

/** Maximum number of addresses per peer. */
const maxAddresses = 16

export interface KnownPeer {
  readonly id: string
  /** Its listen addresses, from identify; each ends with its id. */
  readonly addresses: readonly string[]
}

/** `connected` is emitted after identify; `discovered` (mDNS) may be emitted repeatedly. */
export type PeerEvent = KnownPeer & { readonly kind: 'connected' | 'discovered' | 'lost' }

export class PeerTable {
  readonly #host: Host
  readonly #onConnection: (connection: Connection) => void
  readonly #connected = new Map<string, KnownPeer>()
  #handler: ((event: PeerEvent) => void) | undefined

  /** @param onConnection called with the connection of each new peer */
  constructor(host: Host, onConnection: (connection: Connection) => void) {
    this.#host = host
    this.#onConnection = onConnection
    host.addEventListener('peer:identify', this.#onIdentify)
    host.addEventListener('peer:disconnect', this.#onDisconnect)
    host.addEventListener('peer:discovery', this.#onDiscovery)
  }

  get connected(): readonly KnownPeer[] {
    return [...this.#connected.values()]
  }

  /** Peers in a referral. */
  referred(contacts: readonly KnownPeer[]): void {
    for (const contact of contacts)
      if (!this.#connected.has(contact.id)) this.#handler?.({ ...contact, kind: 'discovered' })
  }

  onEvent(handler: (event: PeerEvent) => void): void {
    this.#handler = handler
  }

  stop(): void {
    this.#handler = undefined
    this.#host.removeEventListener('peer:identify', this.#onIdentify)
    this.#host.removeEventListener('peer:disconnect', this.#onDisconnect)
    this.#host.removeEventListener('peer:discovery', this.#onDiscovery)
  }

  readonly #onIdentify = (event: CustomEvent<IdentifyResult>): void => {
    const { peerId, listenAddrs, connection } = event.detail
    // On a connection with limits, tabs exchange session descriptions only.
    if (connection.status !== 'open' || connection.limits !== undefined) return
    const peer = describe(peerId, listenAddrs)
    const isNew = !this.#connected.has(peer.id)
    this.#connected.set(peer.id, peer)
    if (!isNew) return
    this.#onConnection(connection)
    this.#handler?.({ ...peer, kind: 'connected' })
  }

  readonly #onDisconnect = (event: CustomEvent<PeerId>): void => {
    const peer = this.#connected.get(event.detail.toString())
    if (peer === undefined) return
    this.#connected.delete(peer.id)
    this.#handler?.({ ...peer, kind: 'lost' })
  }

  readonly #onDiscovery = (event: CustomEvent<PeerInfo>): void => {
    const peer = describe(event.detail.id, event.detail.multiaddrs)
    if (peer.addresses.length === 0 || this.#connected.has(peer.id)) return
    this.#handler?.({ ...peer, kind: 'discovered' })
  }
}

function describe(peerId: PeerId, addresses: readonly Multiaddr[]): KnownPeer {
  const id = peerId.toString()
  const dialable = addresses.filter(address => address.getComponents().some(({ name }) => name === 'tcp'))
  return { id, addresses: dialable.slice(0, maxAddresses).map(address => withPeer(address, id)) }
}

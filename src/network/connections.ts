/**
 * The connections of a peer: which peers are connected and at which addresses, and how connections are kept free for new peers.
 * When few are left, the oldest idle ones are closed, and their peers are referred to others, so any number of peers can start
 * with one address.
 *
 * Referral: a peer that needs free connections sends the addresses of some other peers and then closes the connection. It uses a
 * separate stream with one control chunk. The receiver closes the stream.
 */
import type { Connection, IdentifyResult, PeerId, PeerInfo, Stream } from '@libp2p/interface'
import type { Multiaddr } from '@multiformats/multiaddr'
import { periodically } from '#platform'
import { parseAddress, withPeer } from './addresses.js'
import { ChunkChannel } from './chunk-channel.js'
import { ChunkKind } from './chunks.js'
import { ProtocolViolationError } from './errors.js'
import type { Host } from './host.js'
import { type Limits, referralProtocol } from './limits.js'

/** Maximum number of addresses per peer. */
const maxAddresses = 16

/** Connected peers and their addresses, from libp2p events. */
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

/** Maximum number of peers in a referral, and of addresses of each. */
const maxContacts = 8
const maxReferredAddresses = 4

/** JSON in UTF-8: `[{"id":"12D3KooW…","addresses":["/ip4/…/p2p/12D3KooW…"]}]`. */
export function encodeReferral(contacts: readonly KnownPeer[]): Uint8Array {
  const named = contacts.slice(0, maxContacts)
  const short = named.map(({ id, addresses }) => ({ id, addresses: addresses.slice(0, maxReferredAddresses) }))
  return new TextEncoder().encode(JSON.stringify(short))
}

/** @throws ProtocolViolationError if the bytes are malformed */
export function decodeReferral(bytes: Uint8Array): KnownPeer[] {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    if (Array.isArray(value) && value.length <= maxContacts && value.every(isContact)) return value
  } catch {
    // Malformed, as below.
  }
  throw new ProtocolViolationError('malformed referral')
}

function isContact(value: unknown): value is KnownPeer {
  if (typeof value !== 'object' || value === null) return false
  const { id, addresses } = value as { readonly id?: unknown; readonly addresses?: unknown }
  if (typeof id !== 'string' || !Array.isArray(addresses) || addresses.length > maxReferredAddresses) return false
  return addresses.every(address => {
    if (typeof address !== 'string' || !address.endsWith(`/p2p/${id}`)) return false
    parseAddress(address)
    return true
  })
}

/** Sends a referral and closes the connection, whether the referral has arrived or not. */
async function refer(connection: Connection, contacts: readonly KnownPeer[], limits: Limits): Promise<void> {
  try {
    const signal = AbortSignal.timeout(limits.helloTimeoutMs)
    const stream = await connection.newStream(referralProtocol, { signal })
    await new Promise<void>(resolve => {
      const channel = new ChunkChannel(stream, limits.closeTimeoutMs)
      const giveUp = setTimeout(resolve, limits.closeTimeoutMs)
      channel.receive({
        chunk: kind => channel.fail(new ProtocolViolationError(`unexpected chunk of kind ${kind} after a referral`)),
        data: () => channel.fail(new ProtocolViolationError('unexpected frame data after a referral')),
        closed: () => {
          clearTimeout(giveUp)
          resolve()
        }
      })
      channel.send(ChunkKind.control, encodeReferral(contacts))
    })
  } finally {
    await connection
      .close({ signal: AbortSignal.timeout(limits.closeTimeoutMs) })
      .catch(error => connection.abort(error))
  }
}

/** Receives the referral of an inbound stream. */
export function receiveReferral(
  stream: Stream,
  limits: Limits,
  onContacts: (contacts: readonly KnownPeer[]) => void,
  onViolation: (reason: string) => void
): void {
  const channel = new ChunkChannel(stream, limits.closeTimeoutMs)
  channel.receive({
    chunk: (kind, payload) => {
      if (kind !== ChunkKind.control) throw new ProtocolViolationError(`unexpected chunk of kind ${kind} in a referral`)
      onContacts(decodeReferral(payload))
      channel.close('received')
    },
    data: () => channel.fail(new ProtocolViolationError('unexpected frame data in a referral')),
    closed: (reason, violation) => {
      if (violation) onViolation(reason)
    }
  })
}

/** Share of the connections that is kept free. */
const reservedShare = 0.1

interface TrimmerOptions {
  readonly host: Host
  readonly limits: Limits
  /** Whether this peer needs the connection: for a session, for gossip, for a device, or as a relay. */
  readonly isUsed: (peer: string) => boolean
  /** Peers to include in referrals, the best first. */
  readonly contacts: () => readonly KnownPeer[]
}

export class Trimmer {
  readonly #options: TrimmerOptions
  readonly #closing = new Set<Connection>()
  readonly stop: () => void

  constructor(options: TrimmerOptions) {
    this.#options = options
    this.stop = periodically(Math.max(100, options.limits.idleConnectionMs / 5), () => this.#trim())
  }

  #trim(): void {
    const { host, limits, isUsed, contacts } = this.#options
    const connections = host.getConnections()
    const free = Math.ceil(limits.connections * reservedShare)
    let excess = connections.length - this.#closing.size - (limits.connections - free)
    if (excess <= 0) return
    const before = Date.now() - limits.idleConnectionMs
    const idle = connections.filter(connection => {
      const isOld = connection.timeline.open < before
      return isOld && !this.#closing.has(connection) && !isUsed(connection.remotePeer.toString())
    })
    idle.sort((a, b) => a.timeline.open - b.timeline.open)
    for (const connection of idle) {
      if (excess-- <= 0) break
      const peer = connection.remotePeer.toString()
      const others = contacts().filter(({ id }) => id !== peer)
      this.#closing.add(connection)
      refer(connection, others, limits)
        // The other end may have left, or may not support referrals.
        .catch(() => undefined)
        .finally(() => this.#closing.delete(connection))
    }
  }
}

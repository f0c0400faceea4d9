/**
 * The libp2p node of a peer: noise, yamux, relaying, and only the services that admb needs. `#transports` depends on the
 * platform.
 *
 * libp2p's peer store keeps what it knows of every peer that was ever connected or discovered. Identities are free, so strangers
 * could fill it: it is bounded here. libp2p also drops a reservation when the relay disconnects and does not request another when
 * it is back: reservations are renewed here.
 */
import type { GossipSub } from '@chainsafe/libp2p-gossipsub'
import { circuitRelayTransport } from '@libp2p/circuit-relay-v2'
import { type Identify, identify } from '@libp2p/identify'
import type { Libp2p, PeerId, Transport } from '@libp2p/interface'
import { peerIdFromString } from '@libp2p/peer-id'
import type { Multiaddr } from '@multiformats/multiaddr'
import { createLibp2p } from 'libp2p'
import { directTransports, hostServices } from '#transports'
import { type AccessControl, limitHalfOpen } from './access.js'
import { isRelayed, isWebSocket, parseAddress, peerOf } from './addresses.js'
import { gossipService } from './gossip.js'
import { libp2pKey, peerIdOf, rawNetworkKey } from './keys.js'
import type { Limits } from './limits.js'
import { admittingNoise } from './membership.js'
import { boundedYamux } from './muxer.js'
import type { NetworkOptions } from './options.js'
import { networkKeyProtector, openProtector } from './protector.js'
import type { Log } from './types.js'
import './polyfill.js'

/** How many hosts can use up their share of half-open connections before others are refused. */
const halfOpenHosts = 4

interface HostOptions extends Omit<NetworkOptions, 'hello'> {
  /** Tag of the hello. */
  readonly tag: string
  readonly access: AccessControl
  readonly limits: Limits
  /** Whether the node only dials others, to ask them. Then it does not gossip, and others do not list it. @default false */
  readonly asks?: boolean
}

export type Host = Libp2p<{ identify: Identify; gossip: GossipSub }>

/**
 * Creates a node that is not started.
 * @throws MalformedAddressError, DamagedKeyError
 */
export async function createHost(options: HostOptions): Promise<Host> {
  const { limits, asks = false, relay = false, mdns = false, dials = [], upgrades, stun = [] } = options
  const [listen, announce] = [options.listen, options.announce ?? []].map(texts => texts.map(parseAddress))
  const hasWebSockets = [...listen, ...announce, ...dials.map(parseAddress)].some(isWebSocket)
  const relaying = circuitRelayTransport()
  // Relays must identify the peers that they connect.
  const isSilent = asks && !dials.map(parseAddress).some(isRelayed)
  const needsRelay = listen.some(isRelayed)
  const signals = upgrades !== undefined
  const { peerDiscovery, services } = await hostServices({ limits, mdns, relay, signals, needsRelay })
  const { transports, listen: more, isAnnounced } = await directTransports({ limits, hasWebSockets, upgrades, stun })
  const self = `/p2p/${peerIdOf(options.privateKey)}`
  const protector = options.networkKey ? networkKeyProtector(rawNetworkKey(options.networkKey)) : openProtector()
  let reservations: Reservations | undefined
  const relayingTransport: typeof relaying = components => {
    const transport = relaying(components)
    reservations = (transport as Transport & { readonly reservationStore: Reservations }).reservationStore
    return transport
  }
  const host = (await createLibp2p({
    start: false,
    privateKey: libp2pKey(options.privateKey),
    nodeInfo: { name: 'admb', version: '1', userAgent: 'admb' },
    addresses: {
      listen: [...listen.map(String), ...more],
      announce: announce.map(String),
      // The HTTP server listens later than this peer.
      announceFilter: own => [
        ...(isAnnounced ? own.filter(isAnnounced) : own),
        ...(upgrades?.addresses ?? []).map(address => parseAddress(`${address}${self}`))
      ]
    },
    transports: [...(isSilent ? [] : [relayingTransport]), ...transports],
    connectionEncrypters: [admittingNoise(options.membership)],
    streamMuxers: [boundedYamux(limits)],
    connectionProtector: () => protector,
    connectionGater: { ...options.access.gater, ...limitHalfOpen(limits.inboundPerSecond) },
    connectionManager: {
      maxConnections: limits.connections,
      inboundConnectionThreshold: limits.inboundPerSecond,
      maxIncomingPendingConnections: halfOpenHosts * Math.max(10, limits.inboundPerSecond),
      dialTimeout: limits.dialTimeoutMs,
      addressDialTimeout: limits.dialTimeoutMs,
      inboundUpgradeTimeout: limits.dialTimeoutMs
    },
    // Overlay heartbeats detect dead neighbours; a busy event loop must not close connections.
    connectionMonitor: { enabled: false },
    peerDiscovery,
    services: {
      ...(isSilent ? {} : { identify: identify(), gossip: gossipService(options.tag) }),
      ...services
    }
  })) as Host
  forgetStrangers(host)
  if (reservations) keepReservations(host, reservations, listen.filter(isRelayed), options.log)
  return host
}

/** Peers remembered that are not connected. */
const maxRemembered = 1024

/** Deletes the oldest peers that have disconnected. */
export function forgetStrangers(host: Pick<Libp2p, 'addEventListener' | 'getConnections' | 'peerStore'>): void {
  const remembered = new Map<string, PeerId>()
  const remember = (peer: PeerId) => {
    const id = peer.toString()
    remembered.delete(id)
    remembered.set(id, peer)
    if (remembered.size <= maxRemembered) return
    const [oldest, oldestPeer] = remembered.entries().next().value as [string, PeerId]
    remembered.delete(oldest)
    // A peer that is connected again is remembered when it disconnects.
    if (host.getConnections(oldestPeer).length === 0) host.peerStore.delete(oldestPeer).catch(() => {})
  }
  host.addEventListener('peer:disconnect', ({ detail }) => remember(detail))
  host.addEventListener('peer:discovery', ({ detail }) => remember(detail.id))
}

/** Interval between checks, in ms. */
const CHECK_INTERVAL_MS = 2000

/** The part of libp2p's relay transport that manages reservations. */
interface Reservations {
  hasReservation(relay: PeerId): boolean
  addRelay(relay: PeerId, type: 'configured'): Promise<unknown>
}

/** @param addresses listen addresses that end in `/p2p-circuit`. Runs while the host is started. */
function keepReservations(host: Libp2p, reservations: Reservations, addresses: readonly Multiaddr[], log: Log): void {
  const relays = addresses.map(address => address.decapsulate('/p2p-circuit'))
  let timer: NodeJS.Timeout | undefined
  const check = async () => {
    await Promise.all(relays.map(relay => renew(host, reservations, relay, log)))
    if (timer !== undefined) timer = setTimeout(check, CHECK_INTERVAL_MS)
  }
  host.addEventListener('start', () => {
    timer = setTimeout(check, CHECK_INTERVAL_MS)
  })
  host.addEventListener('stop', () => {
    clearTimeout(timer)
    timer = undefined
  })
}

async function renew(host: Libp2p, reservations: Reservations, relay: Multiaddr, log: Log): Promise<void> {
  const id = peerOf(relay)
  if (id === undefined || reservations.hasReservation(peerIdFromString(id))) return
  try {
    // Dial first: libp2p would permanently treat an unreachable relay as one that refuses.
    await host.dial(relay)
    await reservations.addRelay(peerIdFromString(id), 'configured')
    log('info', `reachable again through relay ${id}`, { relay: id })
  } catch (error) {
    log('debug', `relay ${id} granted no reservation: ${(error as Error).message}`, { relay: id })
  }
}

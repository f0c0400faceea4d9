/** The libp2p node of a peer: noise, yamux, relaying, and only the services that admb needs. `#transports` depends on the platform. */
import './polyfill.js'
import type { GossipSub } from '@chainsafe/libp2p-gossipsub'
import { circuitRelayTransport } from '@libp2p/circuit-relay-v2'
import { type Identify, identify } from '@libp2p/identify'
import type { Libp2p, Transport } from '@libp2p/interface'
import { createLibp2p } from 'libp2p'
import { directTransports, hostServices } from '#transports'
import type { AccessControl } from './access.js'
import { isRelayed, isWebSocket, parseAddress } from './addresses.js'
import { admittingNoise } from './admission.js'
import { gossipService } from './gossip.js'
import { limitHalfOpen } from './half-open.js'
import { libp2pKey, peerIdOf, rawNetworkKey } from './keys.js'
import type { Limits } from './limits.js'
import type { Membership } from './membership.js'
import { boundedYamux } from './muxer.js'
import { forgetStrangers } from './peer-store.js'
import { networkKeyProtector, openProtector } from './protector.js'
import { keepReservations, type Reservations } from './relay-keeper.js'
import type { IdentityKey, Log } from './types.js'
import type { WebSocketUpgrades } from './upgrades.js'

/** How many hosts can use up their share of half-open connections before others are refused. */
const halfOpenHosts = 4

export interface HostOptions {
  readonly privateKey: IdentityKey
  readonly listen: readonly string[]
  readonly announce: readonly string[]
  readonly networkKey: Uint8Array | undefined
  /** Tag of the hello. */
  readonly tag: string
  readonly mdns: boolean
  /** Whether it serves as a relay. */
  readonly relay: boolean
  /** Addresses that will be dialled. */
  readonly dials: readonly string[]
  readonly upgrades: WebSocketUpgrades | undefined
  /** URLs of STUN servers for WebRTC. */
  readonly stun: readonly string[]
  readonly access: AccessControl
  readonly membership: Membership | undefined
  readonly limits: Limits
  readonly log: Log
}

export type Host = Libp2p<{ identify: Identify; gossip: GossipSub }>

/**
 * Creates a node that is not started.
 * @throws MalformedAddressError, DamagedKeyError
 */
export async function createHost(options: HostOptions): Promise<Host> {
  const { limits, relay, mdns, dials } = options
  const [listen, announce] = [options.listen, options.announce].map(texts => texts.map(parseAddress))
  const hasWebSockets = [...listen, ...announce, ...dials.map(parseAddress)].some(isWebSocket)
  const relaying = circuitRelayTransport()
  const needsRelay = listen.some(isRelayed)
  const signals = options.upgrades !== undefined
  const { peerDiscovery, services } = await hostServices({ limits, mdns, relay, signals, needsRelay })
  const { upgrades, stun } = options
  const { transports, listen: more, isAnnounced } = await directTransports({ limits, hasWebSockets, upgrades, stun })
  const self = `/p2p/${peerIdOf(options.privateKey)}`
  const protector = options.networkKey ? networkKeyProtector(rawNetworkKey(options.networkKey)) : openProtector()
  let reservations: Reservations | undefined
  const host = await createLibp2p({
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
    transports: [
      components => {
        const transport = relaying(components)
        reservations = (transport as Transport & { readonly reservationStore: Reservations }).reservationStore
        return transport
      },
      ...transports
    ],
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
      identify: identify(),
      gossip: gossipService(options.tag),
      ...services
    }
  })
  forgetStrangers(host)
  if (reservations) keepReservations(host, reservations, listen.filter(isRelayed), options.log)
  return host
}

/**
 * How a peer under Node.js connects directly, and the services that help others to do so: `#transports`. Optional ones (WebSockets,
 * NAT traversal, mDNS) are loaded on demand.
 */
import './polyfill.js'
import { circuitRelayServer } from '@libp2p/circuit-relay-v2'
import { tcp } from '@libp2p/tcp'
import type { Libp2pOptions } from 'libp2p'
import type { Limits } from './limits.js'
import type { WebSocketUpgrades } from './upgrades.js'

/** Whether this platform dials TCP; otherwise only WebSockets. */
export const dialsTcp: boolean = true

/** mDNS service name. */
const mdnsService = '_admb._udp.local'

type Parts = Required<Pick<Libp2pOptions, 'transports' | 'peerDiscovery' | 'services'>>

export interface DirectOptions {
  readonly limits: Limits
  /** Whether an address uses them. */
  readonly hasWebSockets: boolean
  /** Connections that an HTTP server receives. @default none */
  readonly upgrades?: WebSocketUpgrades
}

export interface ServiceOptions {
  readonly limits: Limits
  readonly mdns: boolean
  /** Whether this peer serves as a relay. */
  readonly relay: boolean
  /** Whether it listens through one. */
  readonly needsRelay: boolean
}

export type HostServices = Pick<Parts, 'peerDiscovery' | 'services'>

export async function directTransports({
  limits,
  hasWebSockets,
  upgrades
}: DirectOptions): Promise<Parts['transports']> {
  if (!hasWebSockets && upgrades === undefined) return [tcp()]
  await import('./websocket-polyfill.js')
  const { boundedWebSockets } = await import('./websocket-transport.js')
  return [tcp(), boundedWebSockets(limits, upgrades)]
}

export async function hostServices({ limits, mdns, relay, needsRelay }: ServiceOptions): Promise<HostServices> {
  const services: Parts['services'] = {}
  // Frames are as large as the model, so relayed connections have no limit on bytes or time; the number of reservations is limited.
  const reservations = { maxReservations: limits.relayedPeers, applyDefaultLimit: false }
  if (relay) services.relay = circuitRelayServer({ reservations })
  if (relay || needsRelay) {
    // Relayed peers learn whether they can be dialled directly (AutoNAT), and try to bypass the relay (DCUtR).
    const [{ autoNAT }, { dcutr }] = await Promise.all([import('@libp2p/autonat'), import('@libp2p/dcutr')])
    services.autoNat = autoNAT()
    services.dcutr = dcutr()
  }
  if (!mdns) return { peerDiscovery: [], services }
  const { mdns: discovery } = await import('@libp2p/mdns')
  return { peerDiscovery: [discovery({ serviceTag: mdnsService })], services }
}

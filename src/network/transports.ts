/**
 * How a peer under Node.js connects directly, and the services that help others to do so: `#transports`. Optional ones (WebSockets,
 * NAT traversal, mDNS) are loaded on demand.
 */
import { type CircuitRelayServerComponents, circuitRelayServer } from '@libp2p/circuit-relay-v2'
import { identifyPush } from '@libp2p/identify'
import type { Libp2pEvents, TypedEventTarget } from '@libp2p/interface'
import { tcp } from '@libp2p/tcp'
import type { Multiaddr } from '@multiformats/multiaddr'
import type { Libp2pOptions } from 'libp2p'
import type { TransportName } from './addresses.js'
import type { Limits } from './limits.js'
import type { WebSocketUpgrades } from './types.js'
import './polyfill.js'

/** What this platform dials. */
export const dialled: readonly TransportName[] = ['tcp', 'ws']

/** mDNS service name. */
const mdnsService = '_admb._udp.local'

type Parts = Required<Pick<Libp2pOptions, 'transports' | 'peerDiscovery' | 'services'>>

export interface DirectOptions {
  readonly limits: Limits
  /** Whether an address uses them. */
  readonly hasWebSockets: boolean
  /** Connections that an HTTP server receives. @default none */
  readonly upgrades?: WebSocketUpgrades
  /** URLs of STUN servers for WebRTC. */
  readonly stun: readonly string[]
}

export interface ServiceOptions {
  readonly limits: Limits
  readonly mdns: boolean
  /** Whether this peer serves as a relay. */
  readonly relay: boolean
  /** Whether it relays between tabs until they are connected directly. */
  readonly signals: boolean
  /** Whether it listens through a relay. */
  readonly needsRelay: boolean
}

/** How libp2p connects directly. */
export interface DirectTransports {
  readonly transports: Parts['transports']
  /** Addresses to listen on, in addition to those of the options. */
  readonly listen: readonly string[]
  /** Whether the peer announces an address at which it listens. @default all of them */
  readonly isAnnounced?: (address: Multiaddr) => boolean
}

export type HostServices = Pick<Parts, 'peerDiscovery' | 'services'>

export async function directTransports({ limits, hasWebSockets, upgrades }: DirectOptions): Promise<DirectTransports> {
  if (!hasWebSockets && upgrades === undefined) return { transports: [tcp()], listen: [] }
  await import('./websocket-transport.js')
  const { boundedWebSockets } = await import('./websocket-transport.js')
  return { transports: [tcp(), boundedWebSockets(limits, upgrades)], listen: [] }
}

export async function hostServices(options: ServiceOptions): Promise<HostServices> {
  const { limits, mdns, relay, signals, needsRelay } = options
  const services: Parts['services'] = {}
  if (relay || signals) services.relay = relayService(limits, relay)
  // Tabs have addresses only after a relay has accepted them.
  if (signals) services.identifyPush = identifyPush()
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

/**
 * The service of a relay. Frames are as large as the model, so connections of a full relay have no limit on bytes or time. Tabs
 * need a relay only to exchange session descriptions.
 */
function relayService({ relayedPeers, signallingBytes, signallingMs }: Limits, isFull: boolean) {
  const create = circuitRelayServer({
    reservations: {
      maxReservations: relayedPeers,
      applyDefaultLimit: !isFull,
      defaultDataLimit: BigInt(signallingBytes),
      defaultDurationLimit: signallingMs
    }
  })
  return (components: CircuitRelayServerComponents & { readonly events: TypedEventTarget<Libp2pEvents> }) => {
    const service = create(components)
    const { reservations } = service
    // Otherwise peers that have left would hold their places for two hours.
    components.events.addEventListener('peer:disconnect', ({ detail }) => {
      reservations.get(detail)?.signal.clear()
      reservations.delete(detail)
    })
    return service
  }
}

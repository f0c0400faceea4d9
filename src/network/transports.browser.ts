/**
 * How a peer in a browser connects: WebSockets to peers under Node.js, and WebRTC to other tabs. Peers under Node.js relay the
 * session descriptions of tabs to each other.
 */
import { identifyPush } from '@libp2p/identify'
import { webRTC } from '@libp2p/webrtc'
import { webSockets } from '@libp2p/websockets'
import type { Multiaddr } from '@multiformats/multiaddr'
import { isWebRtc, isWebSocket, type TransportName } from './addresses.js'
import type { DirectOptions, DirectTransports, HostServices, ServiceOptions } from './transports.js'

/** Some browsers lack WebRTC, and users can disable it. */
const hasWebRtc = 'RTCPeerConnection' in globalThis

export const dialled: readonly TransportName[] = hasWebRtc ? ['ws', 'webrtc'] : ['ws']

/** Two relays, so that others can still reach this tab when one of them stops. */
const listen = ['/p2p-circuit', '/p2p-circuit', '/webrtc']

export async function directTransports({ stun }: DirectOptions): Promise<DirectTransports> {
  if (!hasWebRtc) return { transports: [webSockets()], listen: [] }
  // By default libp2p uses public STUN servers, whose operators would learn the address of each tab.
  const rtcConfiguration = { iceServers: stun.map(urls => ({ urls })) }
  return { transports: [webSockets(), webRTC({ rtcConfiguration })], listen, isAnnounced }
}

/** Whether other tabs can dial it: the relay listens on WebSockets, and carries session descriptions only. */
function isAnnounced(address: Multiaddr): boolean {
  return isWebRtc(address) && isWebSocket(address)
}

export async function hostServices(_options: ServiceOptions): Promise<HostServices> {
  return { peerDiscovery: [], services: { identifyPush: identifyPush() } }
}

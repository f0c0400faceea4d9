/** How a peer in a browser connects: WebSockets, and WebRTC where there is a relay. Others cannot dial it otherwise. */
import { webSockets } from '@libp2p/websockets'
import type { DirectOptions, HostServices, ServiceOptions } from '../network/transports.js'

export const dialsTcp: boolean = false

export async function directTransports(_options: DirectOptions) {
  return [webSockets()]
}

export async function hostServices(_options: ServiceOptions): Promise<HostServices> {
  return { peerDiscovery: [], services: {} }
}

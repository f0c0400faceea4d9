/** The libp2p node under a peer: TCP, noise, yamux, and no service that learning together does not need. */
import './polyfill.js'
import type { GossipSub } from '@chainsafe/libp2p-gossipsub'
import { type Identify, identify } from '@libp2p/identify'
import type { ConnectionProtector, Libp2p } from '@libp2p/interface'
import { noise } from '@libp2p/noise'
import { preSharedKey } from '@libp2p/pnet'
import { tcp } from '@libp2p/tcp'
import { yamux } from '@libp2p/yamux'
import { createLibp2p } from 'libp2p'
import type { AccessControl } from './access.js'
import { parseAddress } from './addresses.js'
import { gossipService } from './gossip.js'
import { type IdentityKey, parseNetworkKey } from './keys.js'
import { protectionFailed } from './libp2p-errors.js'
import type { Limits } from './limits.js'

/** The mDNS service that peers look for on their local network. */
const mdnsService = '_admb._udp.local'

export interface HostOptions {
  readonly privateKey: IdentityKey
  readonly listen: readonly string[]
  readonly announce: readonly string[]
  readonly networkKey: Uint8Array | undefined
  readonly mdns: boolean
  readonly access: AccessControl
  readonly limits: Limits
}

export type Host = Libp2p<{ identify: Identify; gossip: GossipSub }>

/**
 * A node that is not started yet.
 * @throws MalformedAddressError, DamagedKeyError
 */
export async function createHost(options: HostOptions): Promise<Host> {
  const { limits } = options
  const addresses = (texts: readonly string[]) => texts.map(text => parseAddress(text).toString())
  return createLibp2p({
    start: false,
    privateKey: options.privateKey,
    nodeInfo: { name: 'admb', version: '1', userAgent: 'admb' },
    addresses: { listen: addresses(options.listen), announce: addresses(options.announce) },
    transports: [tcp()],
    connectionEncrypters: [noise()],
    // A window below the read buffer's limit: a reader that pauses is waited for instead of reset.
    streamMuxers: [yamux({ streamOptions: { maxStreamWindowSize: 2 ** 21, maxReadBufferLength: 2 ** 22 } })],
    ...(options.networkKey && { connectionProtector: protector(options.networkKey) }),
    connectionGater: options.access.gater,
    connectionManager: {
      maxConnections: limits.connections,
      inboundConnectionThreshold: limits.inboundPerSecond,
      maxIncomingPendingConnections: Math.max(10, limits.inboundPerSecond),
      dialTimeout: limits.dialTimeoutMs,
      addressDialTimeout: limits.dialTimeoutMs,
      inboundUpgradeTimeout: limits.dialTimeoutMs
    },
    // Overlay heartbeats watch neighbours, and a busy event loop is no reason to drop one.
    connectionMonitor: { enabled: false },
    ...(options.mdns && { peerDiscovery: [(await import('@libp2p/mdns')).mdns({ serviceTag: mdnsService })] }),
    services: { identify: identify(), gossip: gossipService }
  })
}

/** libp2p's protector, whose failure (a network key at this end only) is told apart from that of a dial. */
function protector(networkKey: Uint8Array): () => ConnectionProtector {
  const inner = preSharedKey({ psk: parseNetworkKey(networkKey) })()
  const protect: ConnectionProtector['protect'] = async (connection, options) => {
    try {
      return await inner.protect(connection, options)
    } catch (error) {
      throw Object.assign(new Error((error as Error).message), { name: protectionFailed })
    }
  }
  return () => ({ protect })
}

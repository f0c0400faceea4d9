/** Options of a network, and targets for dialling. */
import type { Hello } from './hello.js'
import type { Limits } from './limits.js'
import type { Membership } from './membership.js'
import type { IdentityKey, Log, WebSocketUpgrades } from './types.js'

export interface NetworkOptions {
  readonly privateKey: IdentityKey
  /** Multiaddresses to listen on, e.g. `/ip4/0.0.0.0/tcp/4001`; port 0 chooses a free one. Empty: dial only. */
  readonly listen: readonly string[]
  /** Multiaddresses announced instead of those listened on. Default: none. */
  readonly announce?: readonly string[]
  /** Content of a network key file. Default: an open network. */
  readonly networkKey?: Uint8Array
  /** Id of the network, which must be equal at both ends of a session. Default: none. */
  readonly networkId?: string
  /** Allow-list of peer ids. Default: all peers. */
  readonly allow?: ReadonlySet<string>
  /** Decides instead of the allow-list, in a network that takes invitations. @default none */
  readonly membership?: Membership
  /** Fields that must be equal at both ends of a session. */
  readonly hello: Hello
  /** Maximum size of a received frame or response, in bytes. */
  readonly maxFrameBytes: number
  /** Whether to discover peers on the local network by mDNS. @default false */
  readonly mdns?: boolean
  /** Whether to serve as a relay. @default false */
  readonly relay?: boolean
  /** Addresses that will be dialled. Must include those of WebSockets, whose transport is loaded on demand. */
  readonly dials?: readonly string[]
  /** Connections over WebSockets that an HTTP server receives. @default none */
  readonly upgrades?: WebSocketUpgrades
  /** URLs of STUN servers with which a tab finds its public addresses. @default none */
  readonly stun?: readonly string[]
  readonly log: Log
  /** @default `defaultLimits` */
  readonly limits?: Partial<Limits>
}

/** A peer to dial: its addresses, and its id unless it is unknown or part of an address. */
export interface PeerTarget {
  readonly id?: string
  readonly addresses: readonly string[]
}

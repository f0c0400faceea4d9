/** What a network is made from, and what it is asked to reach. */
import type { Hello } from './hello.js'
import type { IdentityKey } from './keys.js'
import type { Limits } from './limits.js'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'
export type Log = (level: LogLevel, message: string, fields: Readonly<Record<string, unknown>>) => void

export interface NetworkOptions {
  readonly privateKey: IdentityKey
  /** Multiaddresses to listen on, e.g. `/ip4/0.0.0.0/tcp/4001`; port 0 takes a free one. Empty: only dial. */
  readonly listen: readonly string[]
  /** Multiaddresses to tell others instead of those listened on. Default: none. */
  readonly announce?: readonly string[]
  /** Content of a network key file. Default: an open network. */
  readonly networkKey?: Uint8Array
  /** Ids of the only peers to talk to. Default: all. */
  readonly allow?: ReadonlySet<string>
  /** What must be equal at both ends of a session. */
  readonly hello: Hello
  /** Largest frame or fetched answer accepted, in bytes. */
  readonly maxFrameBytes: number
  /** Whether to find peers on the local network by mDNS. Default: false. */
  readonly mdns?: boolean
  /** Whether to relay between peers that cannot reach each other directly. Default: false. */
  readonly relay?: boolean
  /** Addresses that are going to be dialled: whether there are WebSockets among them must be known beforehand. */
  readonly dials?: readonly string[]
  readonly log: Log
  /** Default: `defaultLimits`. */
  readonly limits?: Partial<Limits>
}

/** A peer to dial: its addresses, and its id unless an address names it or it is not known. */
export interface PeerTarget {
  readonly id?: string
  readonly addresses: readonly string[]
}

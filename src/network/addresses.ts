/** Multiaddresses as users write them, checked early and with an error that shows the right form. */
import { CODE_P2P, CODE_P2P_CIRCUIT, CODE_WS, CODE_WSS, type Multiaddr, multiaddr } from '@multiformats/multiaddr'
import { MalformedAddressError } from './errors.js'

/** @throws MalformedAddressError if it is no multiaddress over TCP */
export function parseAddress(text: string): Multiaddr {
  let address: Multiaddr
  try {
    address = multiaddr(text.trim())
  } catch {
    throw new MalformedAddressError(text)
  }
  if (!address.getComponents().some(({ name }) => name === 'tcp')) throw new MalformedAddressError(text)
  return address
}

/** The peer id that an address ends with, if it names one: behind a relay, not that of the relay. */
export function peerOf(address: Multiaddr): string | undefined {
  const parts = address.getComponents()
  return parts
    .slice(parts.findLastIndex(({ code }) => code === CODE_P2P_CIRCUIT) + 1)
    .find(({ code }) => code === CODE_P2P)?.value
}

/** Whether a relay stands between. */
export function isRelayed(address: Multiaddr): boolean {
  return address.getComponents().some(({ code }) => code === CODE_P2P_CIRCUIT)
}

/** Whether it leads through a WebSocket. */
export function isWebSocket(address: Multiaddr): boolean {
  return address.getComponents().some(({ code }) => code === CODE_WS || code === CODE_WSS)
}

/** The address with `/p2p/<peer>` at its end, once. */
export function withPeer(address: Multiaddr, peer: string): string {
  return peerOf(address) === undefined ? address.encapsulate(`/p2p/${peer}`).toString() : address.toString()
}

/** The first TCP end on the way to an address. */
export interface TcpEnd {
  readonly host: string
  readonly port: number
  /** Whether `host` has to be looked up. */
  readonly isName: boolean
  /** Whether the peer itself answers there, in plain TCP: no relay, no WebSocket. */
  readonly isPlain: boolean
}

/** @param address as `parseAddress` lets it through */
export function tcpEndOf(address: Multiaddr): TcpEnd {
  const parts = address.getComponents()
  const [{ name, value: host = '' }] = parts
  const port = Number(parts.find(part => part.name === 'tcp')?.value)
  const isPlain = !isRelayed(address) && !isWebSocket(address) && !parts.some(part => part.name === 'tls')
  return { host, port, isName: name.startsWith('dns'), isPlain }
}

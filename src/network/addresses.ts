/** Parsing and inspection of multiaddresses. */
import {
  CODE_P2P,
  CODE_P2P_CIRCUIT,
  CODE_TCP,
  CODE_WEBRTC,
  CODE_WS,
  CODE_WSS,
  type Multiaddr,
  multiaddr
} from '@multiformats/multiaddr'
import { MalformedAddressError } from './errors.js'

/** @throws MalformedAddressError if `text` is not a multiaddress over TCP or WebRTC */
export function parseAddress(text: string): Multiaddr {
  let address: Multiaddr
  try {
    address = multiaddr(text.trim())
  } catch {
    throw new MalformedAddressError(text)
  }
  if (!address.getComponents().some(({ code }) => code === CODE_TCP || code === CODE_WEBRTC))
    throw new MalformedAddressError(text)
  return address
}

/** The peer id at the end of an address, if any; behind a relay, that of the relayed peer. */
export function peerOf(address: Multiaddr): string | undefined {
  const parts = address.getComponents()
  return parts
    .slice(parts.findLastIndex(({ code }) => code === CODE_P2P_CIRCUIT) + 1)
    .find(({ code }) => code === CODE_P2P)?.value
}

/** Whether the address goes through a relay. */
export function isRelayed(address: Multiaddr): boolean {
  return address.getComponents().some(({ code }) => code === CODE_P2P_CIRCUIT)
}

/** Whether the address uses WebSockets. */
export function isWebSocket(address: Multiaddr): boolean {
  return address.getComponents().some(({ code }) => code === CODE_WS || code === CODE_WSS)
}

/** Whether the address is that of a WebRTC connection, for which a relay exchanges session descriptions. */
export function isWebRtc(address: Multiaddr): boolean {
  return address.getComponents().some(({ code }) => code === CODE_WEBRTC)
}

/** What dials an address: TCP alone (`tcp`), WebSockets (`ws`) or WebRTC (`webrtc`). */
export type TransportName = 'tcp' | 'ws' | 'webrtc'

/** @returns undefined if the address is malformed */
export function transportOf(address: string): TransportName | undefined {
  try {
    const parsed = parseAddress(address)
    if (isWebRtc(parsed)) return 'webrtc'
    return isWebSocket(parsed) ? 'ws' : 'tcp'
  } catch {
    return undefined
  }
}

/** The address with `/p2p/<peer>` appended unless it contains a peer id. */
export function withPeer(address: Multiaddr, peer: string): string {
  return peerOf(address) === undefined ? address.encapsulate(`/p2p/${peer}`).toString() : address.toString()
}

/** The first TCP endpoint of an address. */
interface TcpEnd {
  readonly host: string
  readonly port: number
  /** Whether `host` is a DNS name. */
  readonly isName: boolean
  /** Whether the peer itself listens there, in plain TCP (no relay, no WebSocket). */
  readonly isPlain: boolean
}

/** @param address result of `parseAddress` */
export function tcpEndOf(address: Multiaddr): TcpEnd {
  const parts = address.getComponents()
  const [{ name, value: host = '' }] = parts
  const port = Number(parts.find(part => part.name === 'tcp')?.value)
  const isPlain = !isRelayed(address) && !isWebSocket(address) && !parts.some(part => part.name === 'tls')
  return { host, port, isName: name.startsWith('dns'), isPlain }
}

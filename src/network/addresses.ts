/** Multiaddresses as users write them, checked early and with an error that shows the right form. */
import { CODE_P2P, type Multiaddr, multiaddr } from '@multiformats/multiaddr'
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

/** The peer id that an address ends with, if it names one. */
export function peerOf(address: Multiaddr): string | undefined {
  return address.getComponents().findLast(({ code }) => code === CODE_P2P)?.value
}

/** The address with `/p2p/<peer>` at its end, once. */
export function withPeer(address: Multiaddr, peer: string): string {
  return peerOf(address) === undefined ? address.encapsulate(`/p2p/${peer}`).toString() : address.toString()
}

/** Who can dial whom, for the overlay: transports from the multiaddresses of peers. */
import { type TransportName, transportOf } from '../network/index.js'
import { TRANSPORT_TCP, TRANSPORT_WEBRTC, TRANSPORT_WEBSOCKET, type Transports } from '../overlay/index.js'

const BITS: Readonly<Record<TransportName, Transports>> = {
  tcp: TRANSPORT_TCP,
  ws: TRANSPORT_WEBSOCKET,
  webrtc: TRANSPORT_WEBRTC
}

/** A set of transports. */
export function transportsNamed(names: readonly TransportName[]): Transports {
  return names.reduce((all, name) => all | BITS[name], 0)
}

/** The transports by which a peer with these addresses can be dialled. Malformed addresses do not count. */
export function transportsOf(addresses: readonly string[]): Transports {
  return addresses.reduce((all, address) => all | bitOf(address), 0)
}

/** The addresses with one of each transport first: overlay messages have room for a few only. */
export function oneOfEachFirst(addresses: readonly string[]): readonly string[] {
  const first = Object.values(BITS).flatMap(bit => addresses.find(address => bitOf(address) === bit) ?? [])
  return [...first, ...addresses.filter(address => !first.includes(address))]
}

function bitOf(address: string): Transports {
  const transport = transportOf(address)
  return transport === undefined ? 0 : BITS[transport]
}

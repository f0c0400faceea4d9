/**
 * Who can dial whom. A peer is redirected only to peers that it can dial. Peers under Node.js dial TCP and WebSockets; a tab of a
 * browser dials WebSockets, and WebRTC if the other end is a tab too.
 */

/** A set of transports: the sum of their bits, 0 to 255. */
export type Transports = number

export const TRANSPORT_TCP = 1
export const TRANSPORT_WEBSOCKET = 2
export const TRANSPORT_WEBRTC = 4
/** What peers dial unless their JOIN says otherwise. A peer without an address for one of these is a _tab_. */
export const BASE_TRANSPORTS: Transports = TRANSPORT_TCP | TRANSPORT_WEBSOCKET
/** Every transport, including those that are not defined yet. */
export const ALL_TRANSPORTS = 255

/** The transports by which addresses can be dialled; 0 if there is none. */
export type TransportsOf = (addresses: readonly string[]) => Transports

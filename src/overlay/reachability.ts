/**
 * Who can dial whom. A peer that dials only some transports (a browser tab: WebSockets) is redirected only to peers that listen
 * on one of them, and a peer that listens on none (a tab) is never the target of a redirect.
 */

/** A set of transports: the sum of their bits, 0 to 255. */
export type Transports = number

export const TRANSPORT_TCP = 1
export const TRANSPORT_WEBSOCKET = 2
/** Every transport, including those that are not defined yet. */
export const ALL_TRANSPORTS = 255

/** The transports by which addresses can be dialled; 0 if there is none. */
export type TransportsOf = (addresses: readonly string[]) => Transports

/**
 * Renews relay reservations: libp2p drops a reservation when the relay disconnects and does not request another when it is
 * back.
 */
import type { Libp2p, PeerId } from '@libp2p/interface'
import { peerIdFromString } from '@libp2p/peer-id'
import type { Multiaddr } from '@multiformats/multiaddr'
import { peerOf } from './addresses.js'
import type { Log } from './types.js'

/** Interval between checks, in ms. */
const CHECK_INTERVAL_MS = 2000

/** The part of libp2p's relay transport that manages reservations. */
export interface Reservations {
  hasReservation(relay: PeerId): boolean
  addRelay(relay: PeerId, type: 'configured'): Promise<unknown>
}

/** @param addresses listen addresses that end in `/p2p-circuit`. Runs while the host is started. */
export function keepReservations(
  host: Libp2p,
  reservations: Reservations,
  addresses: readonly Multiaddr[],
  log: Log
): void {
  const relays = addresses.map(address => address.decapsulate('/p2p-circuit'))
  let timer: NodeJS.Timeout | undefined
  const check = async () => {
    await Promise.all(relays.map(relay => renew(host, reservations, relay, log)))
    if (timer !== undefined) timer = setTimeout(check, CHECK_INTERVAL_MS)
  }
  host.addEventListener('start', () => {
    timer = setTimeout(check, CHECK_INTERVAL_MS)
  })
  host.addEventListener('stop', () => {
    clearTimeout(timer)
    timer = undefined
  })
}

async function renew(host: Libp2p, reservations: Reservations, relay: Multiaddr, log: Log): Promise<void> {
  const id = peerOf(relay)
  if (id === undefined || reservations.hasReservation(peerIdFromString(id))) return
  try {
    // Dial first: libp2p would permanently treat an unreachable relay as one that refuses.
    await host.dial(relay)
    await reservations.addRelay(peerIdFromString(id), 'configured')
    log('info', `reachable again through relay ${id}`, { relay: id })
  } catch (error) {
    log('debug', `relay ${id} granted no reservation: ${(error as Error).message}`, { relay: id })
  }
}

/**
 * Keeps a peer reachable through its relays: libp2p forgets a reservation when the relay goes away, and does not ask for
 * another when the relay is back.
 */
import type { Libp2p, PeerId } from '@libp2p/interface'
import { peerIdFromString } from '@libp2p/peer-id'
import type { Multiaddr } from '@multiformats/multiaddr'
import { peerOf } from './addresses.js'
import type { Log } from './options.js'

/** Between two looks at the reservations, in milliseconds. */
const CHECK_INTERVAL_MS = 2000

/** The part of libp2p's relay transport that makes reservations. */
export interface Reservations {
  hasReservation(relay: PeerId): boolean
  addRelay(relay: PeerId, type: 'configured'): Promise<unknown>
}

/** @param addresses those listened on, each ending in `/p2p-circuit`. Works while the host runs. */
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
    // First, because a relay that cannot be dialled would count as one that refuses, for good.
    await host.dial(relay)
    await reservations.addRelay(peerIdFromString(id), 'configured')
    log('info', `reachable again through the relay ${id}`, { relay: id })
  } catch (error) {
    log('debug', `the relay ${id} takes no reservation: ${(error as Error).message}`, { relay: id })
  }
}

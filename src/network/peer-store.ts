/**
 * Bounds libp2p's peer store, which keeps what it knows of every peer that was ever connected or discovered. Identities
 * are free, so strangers could fill it.
 */
import type { Libp2p, PeerId } from '@libp2p/interface'

/** Peers remembered that are not connected. */
const maxRemembered = 1024

/** Deletes the oldest peers that have disconnected. */
export function forgetStrangers(host: Pick<Libp2p, 'addEventListener' | 'getConnections' | 'peerStore'>): void {
  const remembered = new Map<string, PeerId>()
  const remember = (peer: PeerId) => {
    const id = peer.toString()
    remembered.delete(id)
    remembered.set(id, peer)
    if (remembered.size <= maxRemembered) return
    const [oldest, oldestPeer] = remembered.entries().next().value as [string, PeerId]
    remembered.delete(oldest)
    // A peer that is connected again is remembered when it disconnects.
    if (host.getConnections(oldestPeer).length === 0) host.peerStore.delete(oldestPeer).catch(() => {})
  }
  host.addEventListener('peer:disconnect', ({ detail }) => remember(detail))
  host.addEventListener('peer:discovery', ({ detail }) => remember(detail.id))
}

/**
 * Half-open connections: accepted, but not yet authenticated. libp2p bounds their number in all; this bounds the share of
 * each host, so that one host that holds its connections open cannot keep all others out.
 */
import type { ConnectionGater, MultiaddrConnection } from '@libp2p/interface'

/** Part of a connection gater. @param perHost half-open connections of one host at a time */
export function limitHalfOpen(
  perHost: number
): Pick<ConnectionGater, 'denyInboundConnection' | 'denyInboundUpgradedConnection'> {
  const counts = new Map<string, number>()
  const counted = new WeakSet<MultiaddrConnection>()
  const release = (connection: MultiaddrConnection) => {
    if (!counted.delete(connection)) return
    const host = hostOf(connection)
    const left = (counts.get(host) ?? 1) - 1
    if (left > 0) counts.set(host, left)
    else counts.delete(host)
  }
  return {
    denyInboundConnection(connection) {
      const host = hostOf(connection)
      const count = counts.get(host) ?? 0
      if (count >= perHost) return true
      counts.set(host, count + 1)
      counted.add(connection)
      connection.addEventListener('close', () => release(connection), { once: true })
      return false
    },
    denyInboundUpgradedConnection(_peer, connection) {
      release(connection)
      return false
    }
  }
}

function hostOf({ remoteAddr }: MultiaddrConnection): string {
  return remoteAddr.getComponents()[0]?.value ?? ''
}

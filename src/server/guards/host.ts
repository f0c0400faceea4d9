/**
 * Protects a server on loopback against DNS rebinding, in which a malicious page makes its own host name resolve to 127.0.0.1.
 * The requests of such a page have that host name, so only the names of loopback are accepted.
 */
import { isIP } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { RefusedError } from '../failures.js'

export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[|\]$/g, '')
  if (isIP(name) === 4) return name.startsWith('127.')
  return name === 'localhost' || name === '::1' || name.startsWith('::ffff:127.')
}

export function requireLoopbackName(app: FastifyInstance): void {
  app.addHook('onRequest', async ({ headers }) => {
    const host = headers.host ?? ''
    if (isLoopback(host.replace(/:\d*$/, ''))) return
    throw new RefusedError(
      403,
      'ERR_HTTP_HOST',
      `this peer accepts requests for loopback only, not for ${host || 'an empty host'}`,
      'use 127.0.0.1 or localhost, or start the peer with --http HOST:PORT and --http-token-file'
    )
  })
}
